/** Where links and hosts stand in the animation, and where each packet is at a time. */

import { KIND, type Hops, type Scenario } from "../engine/protocol";
import { pathsOf } from "../runs";
import { queueEnds } from "./queue";

export interface Place {
  /** The middle of the queue's right end, where the wire begins. */
  x: number;
  y: number;
  /** How long the wire is. */
  length: number;
  /** How long the queue may be drawn. */
  room: number;
}

export interface Stage {
  width: number;
  height: number;
  links: Place[];
  /** By flow: where its sender and its receiver stand. */
  senders: { x: number; y: number }[];
  receivers: { x: number; y: number }[];
  /** The height at which acknowledgements return. */
  back: number;
}

const ROW = 120;

/** Columns of links by how many links lie before them on any path. */
export function columnsOf(scenario: Scenario): { column: number[]; row: number[]; columns: number; rows: number } {
  const index = new Map(scenario.links.map(({ name }, at) => [name, at]));
  const column = scenario.links.map(() => 0);
  const paths = scenario.flows.flatMap(pathsOf).map(({ path }) => path);
  for (const path of paths) {
    path.forEach((name, at) => {
      const link = index.get(name) ?? 0;
      column[link] = Math.max(column[link] ?? 0, at);
    });
  }
  const used: number[] = [];
  const row = column.map((at) => {
    used[at] = (used[at] ?? 0) + 1;
    return (used[at] ?? 1) - 1;
  });
  return { column, row, columns: Math.max(...column, 0) + 1, rows: Math.max(...used.map((count) => count || 0), 1) };
}

/** More hosts than this stand at one place. */
const MOST_HOSTS = 8;

export function stageOf(scenario: Scenario, width: number): Stage {
  const { column, row, columns, rows } = columnsOf(scenario);
  const narrow = width < 560;
  const margin = narrow ? 58 : 100;
  const hosts = Math.min(scenario.flows.length, MOST_HOSTS);
  const height = Math.max(rows * ROW, hosts * 30 + 20) + 70;
  const back = height - 28;
  const span = (width - 2 * margin) / columns;
  const room = Math.min(span * 0.42, 260);
  const links = scenario.links.map((_, at): Place => {
    const y = ((row[at] ?? 0) + 0.5) * ((height - 70) / rows) + 12;
    const x = margin + (column[at] ?? 0) * span + room + 14;
    return { x, y, length: span - room - 22, room };
  });
  const y = (flow: number): number => 24 + ((Math.min(flow, hosts - 1) + 0.5) * (height - 94)) / hosts;
  return {
    width,
    height,
    links,
    back,
    senders: scenario.flows.map((_, flow) => ({ x: margin - 26, y: y(flow) })),
    receivers: scenario.flows.map((_, flow) => ({ x: width - margin + 26, y: y(flow) })),
  };
}

export interface Dot {
  x: number;
  y: number;
  flow: number;
  /** The link that it is on; beyond the scenario's on the way back. */
  link: number;
  isAck: boolean;
  isRetransmission: boolean;
  isMarked: boolean;
  /** 0 unless it was dropped: how long ago, as a share of the time that a drop is shown. */
  fall: number;
}

/** The hops of a window, ready to be looked up by time. */
export class Film {
  private readonly order: Uint32Array;
  private readonly longest: number;
  /** When each data packet leaves the queue, by hop. */
  private readonly starts: Float64Array;

  constructor(
    readonly hops: Hops,
    readonly scenario: Scenario,
  ) {
    const { entered, left } = hops.columns;
    this.order = Uint32Array.from(entered.keys());
    this.order.sort((a, b) => (entered[a] ?? 0) - (entered[b] ?? 0));
    let longest = 0;
    left.forEach((time, hop) => {
      if (!Number.isNaN(time)) longest = Math.max(longest, time - (entered[hop] ?? 0));
    });
    this.longest = longest;
    this.starts = queueEnds(hops, scenario);
  }

  /** Calls `show` for each packet at a time; returns the packets in the queue of each link. */
  at(time: number, stage: Stage, drops: number, show: (dot: Dot) => void): number[] {
    const { entered, left, link, flow, kind } = this.hops.columns;
    const waiting = this.scenario.links.map(() => 0);
    const first = this.search(time - this.longest - drops);
    for (let at = first; at < this.order.length; at += 1) {
      const hop = this.order[at] ?? 0;
      const begin = entered[hop] ?? 0;
      if (begin > time) break;
      const end = left[hop] ?? NaN;
      const bits = kind[hop] ?? 0;
      const isDropped = (bits & (KIND.dropped | KIND.lost)) > 0;
      if (Number.isNaN(end) || time >= end + (isDropped ? drops : 0)) continue;
      const number = link[hop] ?? 0;
      const place = stage.links[number];
      const dot: Dot = {
        x: 0,
        y: 0,
        flow: flow[hop] ?? 0,
        link: number,
        isAck: (bits & KIND.fromSender) === 0,
        isRetransmission: (bits & KIND.retransmission) > 0,
        isMarked: (bits & KIND.marked) > 0,
        fall: 0,
      };
      if (!place) {
        this.returning(dot, stage, (time - begin) / (end - begin));
      } else if (isDropped && time >= end) {
        dot.fall = (time - end) / drops;
        [dot.x, dot.y] = [place.x - place.room - 8, place.y + 10 + 44 * dot.fall];
      } else {
        const start = this.starts[hop] ?? begin;
        if (time < start || isDropped) {
          dot.x = -(waiting[number] ?? 0) - 1; // its number in the queue; placed when the length is known
          dot.y = number;
          waiting[number] = (waiting[number] ?? 0) + 1;
        } else {
          const share = (time - start) / Math.max(end - start, 1e-12);
          [dot.x, dot.y] = [place.x + share * place.length, place.y];
        }
      }
      show(dot);
    }
    return waiting;
  }

  /** The first hop, in order of time, that entered at or after a time. */
  private search(time: number): number {
    const { entered } = this.hops.columns;
    let [low, high] = [0, this.order.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((entered[this.order[middle] ?? 0] ?? 0) < time) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  private returning(dot: Dot, stage: Stage, share: number): void {
    const [from, to] = [stage.receivers[dot.flow], stage.senders[dot.flow]];
    dot.x = (from?.x ?? 0) + share * ((to?.x ?? 0) - (from?.x ?? 0));
    dot.y = stage.back;
  }
}
