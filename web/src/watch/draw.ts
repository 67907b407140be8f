/** Draws a moment of the animation. */

import type { Valid } from "../engine/protocol";
import { pathsOf } from "../runs";
import { timeText } from "../scenario/quantities";
import { variable } from "../results/looks";
import { delayAt } from "./queue";
import type { Dot, Film, Stage } from "./stage";

export interface Scene {
  checked: Valid;
  stage: Stage;
  film: Film;
  colours: string[];
  time: number;
  /** How long a dropped packet is shown, s of simulated time. */
  drops: number;
}

/** How many packets the queue of each link holds, if that is known. */
function limit(checked: Valid, number: number): number {
  const link = checked.scenario.links[number];
  const queue = link?.queue;
  if (!queue) return Infinity;
  if ("packets" in queue) return queue.packets;
  const bytes = "bytes" in queue ? queue.bytes : ((queue.ns / 1e9) * (link.rate_bps ?? 0)) / 8;
  return bytes / 1500;
}

const GAP = 2;

interface Queue {
  size: number;
  perColumn: number;
  step: number;
}

/** How packets stand in a queue of this length: in columns from the right. */
function queueOf(room: number, most: number): Queue {
  const height = 60;
  for (const size of [9, 7, 5, 4, 3, 2]) {
    const [step, perColumn] = [size + GAP, Math.floor(height / (size + GAP))];
    if (Math.ceil(most / perColumn) * step <= room - 6 || size === 2) return { size, perColumn, step };
  }
  return { size: 2, perColumn: 15, step: 4 };
}

function packet(ctx: CanvasRenderingContext2D, dot: Dot, x: number, y: number, [width, height]: Size, colour: string): void {
  ctx.fillStyle = colour;
  ctx.fillRect(x - width / 2, y - height / 2, width, height);
  if (dot.isRetransmission && !dot.isAck) {
    ctx.fillStyle = variable("--paper");
    ctx.fillRect(x - width / 2, y - height / 6, width, height / 3);
  }
  if (dot.isMarked) {
    ctx.strokeStyle = variable("--bad");
    ctx.lineWidth = 1.5;
    ctx.strokeRect(x - width / 2 - 1, y - height / 2 - 1, width + 2, height + 2);
  }
}

type Size = [width: number, height: number];

const ACK: Size = [3, 7];

/** The size of packets on a wire: as far apart as they are, so that gaps can be seen. */
function onWire({ checked, stage, time }: Scene, number: number): Size {
  const link = checked.scenario.links[number];
  const packets = 1 + (link ? ((link.rate_bps ?? 0) * delayAt(link, time)) / 12_000 : 0);
  return [Math.min(Math.max((0.75 * (stage.links[number]?.length ?? 0)) / packets, 1.5), 11), 11];
}

/** Draws; returns the packets in each queue. */
export function draw(ctx: CanvasRenderingContext2D, scene: Scene): number[] {
  const { stage, film, time, checked, colours } = scene;
  const [ink, soft, line] = [variable("--ink"), variable("--soft"), variable("--line")];
  ctx.clearRect(0, 0, stage.width, stage.height);
  ctx.font = `12px ${getComputedStyle(document.body).fontFamily}`;
  ctx.textBaseline = "middle";
  wires(ctx, scene, line);
  const queues = stage.links.map(({ room }, number) => {
    const most = limit(checked, number);
    return queueOf(room, Number.isFinite(most) ? Math.min(most, 4000) : 200);
  });
  const wired = stage.links.map((_, number) => onWire(scene, number));
  const dots: Dot[] = [];
  const waiting = film.at(time, stage, scene.drops, (dot) => dots.push(dot));
  for (const dot of dots) {
    const colour = colours[dot.flow] ?? ink;
    if (dot.x < 0) {
      const [place, queue] = [stage.links[dot.y], queues[dot.y]];
      if (!place || !queue) continue;
      const at = -dot.x - 1;
      const x = place.x - 12 - Math.floor(at / queue.perColumn) * queue.step;
      if (x < place.x - place.room) continue;
      packet(ctx, dot, x, place.y + 28 - (at % queue.perColumn) * queue.step, [queue.size, queue.size], colour);
    } else if (dot.fall > 0) {
      cross(ctx, dot, variable("--bad"));
    } else {
      packet(ctx, dot, dot.x, dot.y, dot.isAck ? ACK : (wired[dot.link] ?? ACK), colour);
    }
  }
  labels(ctx, scene, waiting, ink, soft);
  return waiting;
}

function wires(ctx: CanvasRenderingContext2D, { stage, checked, colours }: Scene, line: string): void {
  ctx.strokeStyle = line;
  ctx.lineWidth = 1.5;
  const index = new Map(checked.scenario.links.map(({ name }, at) => [name, at]));
  checked.scenario.flows.forEach((flow, number) => {
    for (const { path } of pathsOf(flow)) {
      ctx.beginPath();
      const [from, to] = [stage.senders[number], stage.receivers[number]];
      ctx.moveTo(from?.x ?? 0, from?.y ?? 0);
      for (const name of path) {
        const place = stage.links[index.get(name) ?? 0];
        if (!place) continue;
        ctx.lineTo(place.x - place.room - 4, place.y);
        ctx.moveTo(place.x + place.length, place.y);
      }
      ctx.lineTo(to?.x ?? 0, to?.y ?? 0);
      ctx.stroke();
    }
    const colour = colours[number] ?? line;
    for (const host of [stage.senders[number], stage.receivers[number]]) {
      if (!host) continue;
      ctx.fillStyle = colour;
      ctx.beginPath();
      ctx.arc(host.x, host.y, 6, 0, 2 * Math.PI);
      ctx.fill();
    }
  });
  const [left, right] = [stage.senders[0]?.x ?? 0, stage.receivers[0]?.x ?? 0];
  ctx.setLineDash([2, 4]);
  ctx.beginPath();
  ctx.moveTo(left, stage.back);
  ctx.lineTo(right, stage.back);
  ctx.stroke();
  ctx.setLineDash([]);
  for (const place of stage.links) {
    ctx.strokeStyle = variable("--soft");
    ctx.beginPath();
    ctx.moveTo(place.x - place.room, place.y - 34);
    ctx.lineTo(place.x - 3, place.y - 34);
    ctx.lineTo(place.x - 3, place.y + 34);
    ctx.lineTo(place.x - place.room, place.y + 34);
    ctx.stroke();
    ctx.strokeStyle = line;
    ctx.lineWidth = 12;
    ctx.beginPath();
    ctx.moveTo(place.x, place.y);
    ctx.lineTo(place.x + place.length, place.y);
    ctx.stroke();
    ctx.lineWidth = 1.5;
  }
}

function cross(ctx: CanvasRenderingContext2D, { x, y, fall }: Dot, colour: string): void {
  ctx.globalAlpha = 1 - fall * 0.8;
  ctx.strokeStyle = colour;
  ctx.lineWidth = 2;
  ctx.beginPath();
  ctx.moveTo(x - 5, y - 5);
  ctx.lineTo(x + 5, y + 5);
  ctx.moveTo(x + 5, y - 5);
  ctx.lineTo(x - 5, y + 5);
  ctx.stroke();
  ctx.globalAlpha = 1;
}

/** At most so many names stand beside hosts. */
const MOST_NAMES = 8;

function labels(ctx: CanvasRenderingContext2D, { stage, checked, time }: Scene, waiting: number[], ink: string, soft: string): void {
  ctx.fillStyle = ink;
  ctx.textAlign = "right";
  checked.scenario.flows.slice(0, MOST_NAMES).forEach(({ name }, number) => {
    const host = stage.senders[number];
    const text = name.length > 11 ? `${name.slice(0, 10)}…` : name;
    if (host) ctx.fillText(text, host.x - 10, host.y, host.x - 12);
  });
  checked.scenario.links.forEach((link, number) => {
    const place = stage.links[number];
    const keys = checked.experiment.link[number];
    if (!place) return;
    ctx.textAlign = "left";
    ctx.fillStyle = ink;
    ctx.fillText(`${waiting[number] ?? 0} packets`, place.x - place.room, place.y - 46);
    ctx.fillStyle = soft;
    const rate = link.rates ? "varies" : (keys?.rate ?? "");
    const delay = timeText(delayAt(link, time)) + (link.jitter_ns ? ` + up to ${timeText(link.jitter_ns / 1e9)}` : "");
    const text = `${link.name}: ${[rate, delay].filter(Boolean).join(", ")}`;
    ctx.fillText(text, place.x + 6, place.y - 20, Math.max(place.length - 6, 40));
  });
  ctx.textAlign = "center";
  ctx.fillStyle = soft;
  ctx.fillText("acknowledgements", stage.width / 2, stage.back + 14);
}
