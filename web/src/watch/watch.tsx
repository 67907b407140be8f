/** The animation of the path, in slow motion, with the windows in step below it. */

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Engine } from "../engine/client";
import { Cancelled } from "../engine/client";
import type { Hops, Source, Valid } from "../engine/protocol";
import { pixels, save } from "../results/export";
import { many, moment } from "../results/format";
import { PACKETS, themed, variable } from "../results/looks";
import { flowLooks } from "../results/panels";
import { baseRtt, heldBy, PACKET_BITS, rateOf } from "../runs";
import { timeText } from "../scenario/quantities";
import { fileName } from "../share/share";
import { draw } from "./draw";
import { Film, stageOf } from "./stage";
import { Strip } from "./strip";

interface Props {
  engine: () => Engine;
  checked: Valid;
  source: Source;
  seed: number;
  /** Where to begin, s. */
  from: number;
  dark: boolean;
  moved: (time: number) => void;
  playing: boolean;
  play: (playing: boolean) => void;
}

/** The longest base RTT, s. */
function longestRtt({ scenario }: Valid): number {
  return Math.max(...scenario.flows.map((flow) => baseRtt(scenario, flow)), 1e-3);
}

/** Hops that are loaded only for the packets that wait when the animation begins. */
const WAITING_HOPS = 50_000;

/** How long before a moment packets enter the path that are still in it then, s. */
function stayOf({ scenario }: Valid, rtt: number): number {
  const rates = scenario.links.map(rateOf).filter((rate) => rate > 0);
  const all = rates.reduce((sum, rate) => sum + rate, 0);
  const packets = rates.length ? Math.min(heldBy(scenario) / Math.min(...rates), WAITING_HOPS / all) : 0;
  return 2 * rtt + packets * PACKET_BITS;
}

/** Some round trips after the last flow has started, when there is most to see. */
function firstMoment({ scenario }: Valid, rtt: number): number {
  return Math.max(...scenario.flows.map(({ start_ns }) => start_ns ?? 0)) / 1e9 + 6 * rtt;
}

/** Each flow in a colour of its own. */
export function packetColours(checked: Valid): string[] {
  const looks = flowLooks(checked);
  const seen = new Set<string>();
  return checked.scenario.flows.map((_, flow) => {
    const own = looks.find((look) => look.flow === flow)?.colour ?? "";
    const free = own.startsWith("#") && !seen.has(own) && themed(own) === own ? own : (PACKETS.find((colour) => !seen.has(colour)) ?? PACKETS[flow % PACKETS.length] ?? own);
    seen.add(free);
    return free;
  });
}

const SPEEDS = 300;
/** From a ten-thousandth of real time to real time. */
const slowest = 1e-4;

export function Watch({ engine, checked, source, seed, from, dark, moved, playing, play }: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const rtt = longestRtt(checked);
  const stay = stayOf(checked, rtt);
  const duration = checked.scenario.duration_ns / 1e9;
  const [hops, setHops] = useState<Hops | null>(null);
  const [said, say] = useState("");
  // A round trip takes four seconds to begin with.
  const [speed, setSpeed] = useState(() => Math.min(rtt / 4, 1));
  const [time, setTime] = useState(() => Math.min(from || firstMoment(checked, rtt), duration));
  const now = useRef(time);
  const [width, setWidth] = useState(800);
  const drops = useRef<Float64Array>(new Float64Array());
  const abort = useRef<AbortController | null>(null);
  const wanted = useRef<number | null>(null);

  const fetchFrom = (at: number): void => {
    if (wanted.current !== null && Math.abs(wanted.current - at) < 1e-9) return;
    wanted.current = at;
    abort.current?.abort();
    abort.current = new AbortController();
    say("Running to this moment …");
    const sample = Math.min(checked.scenario.sample_ns / 1e9, Math.max(duration / 20_000, rtt / 20));
    const task = { kind: "watch" as const, source, seed, from: at, lead: stay + 0.5 * rtt + 0.2, sample, allDrops: drops.current.length === 0 };
    engine().ask(task, { signal: abort.current.signal }).then(
      (found) => {
        if (found.drops.length) drops.current = found.drops;
        wanted.current = null;
        setHops(found);
        say("");
      },
      (error: Error) => {
        wanted.current = null;
        if (!(error instanceof Cancelled)) say(error.message);
      },
    );
  };

  useEffect(() => {
    drops.current = new Float64Array();
    setHops(null);
    fetchFrom(time);
    return () => abort.current?.abort();
  }, [source, seed]);

  const seek = (to: number): void => {
    const at = Math.min(Math.max(to, 0), duration);
    now.current = at;
    setTime(at);
    moved(at);
    if (!hops || at < hops.from + (hops.from > 0 ? stay : 0) || at > hops.until) fetchFrom(at);
  };

  const film = useMemo(() => (hops ? new Film(hops, checked.scenario) : null), [hops]);
  const stage = useMemo(() => stageOf(checked.scenario, width), [checked, width]);
  const colours = useMemo(() => packetColours(checked).map(themed), [checked, dark]);

  useEffect(() => {
    const element = canvas.current?.parentElement;
    if (!element) return undefined;
    const observer = new ResizeObserver(() => setWidth(Math.max(element.clientWidth, 300)));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);

  useLayoutEffect(() => {
    const element = canvas.current;
    const ctx = element?.getContext("2d");
    if (!element || !ctx || !film) return;
    const ratio = window.devicePixelRatio || 1;
    if (element.width !== Math.round(stage.width * ratio)) element.width = Math.round(stage.width * ratio);
    if (element.height !== Math.round(stage.height * ratio)) element.height = Math.round(stage.height * ratio);
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    draw(ctx, { checked, stage, film, colours, time, drops: 0.7 * speed });
  }, [film, stage, colours, time, dark]);

  useEffect(() => {
    if (!playing || !film) return undefined;
    let [frame, before] = [0, performance.now()];
    const tick = (at: number): void => {
      const to = now.current + Math.min((at - before) / 1e3, 0.1) * speed;
      before = at;
      if (to >= duration) play(false);
      seek(to);
      frame = requestAnimationFrame(tick);
    };
    frame = requestAnimationFrame(tick);
    return () => cancelAnimationFrame(frame);
  }, [playing, film, speed]);

  const jump = (): void => {
    const next = drops.current.find((at) => at > time + 1e-6 + 0.5 * speed);
    if (next === undefined) return say(drops.current.length ? "No loss comes after this moment." : "No packet is lost in this run.");
    say("");
    // A moment before it, so that it is seen to happen; while paused, a moment after it.
    seek(Math.max(next + (playing ? -0.4 : 0.1) * speed, 0));
  };

  const picture = async (): Promise<void> => {
    const drawn = canvas.current;
    if (drawn) save(`${fileName(checked.experiment.title)}-path.png`, await pixels(drawn, drawn.width, drawn.height, variable("--paper")), "image/png");
  };

  return (
    <section class="watch" aria-label="Animation of the path">
      <div class="stage">
        <canvas ref={canvas} style={{ width: `${stage.width}px`, height: `${stage.height}px` }} role="img" aria-label={`Packets on the path at ${moment(time)}`} />
        {said && <p class="said" role="status">{said}</p>}
      </div>
      <div class="row controls">
        <button type="button" class="main" onClick={() => play(!playing)} aria-pressed={playing}>
          {playing ? "Pause" : "Play"}
        </button>
        <button type="button" onClick={() => (play(false), seek(time - rtt / 40))} aria-label="A step back">◂ Step</button>
        <button type="button" onClick={() => (play(false), seek(time + rtt / 40))} aria-label="A step forward">Step ▸</button>
        <button type="button" onClick={jump}>Next loss</button>
        <button type="button" onClick={() => void picture()} disabled={!film}>Save as PNG</button>
        <label class="slider speed">
          <span>Speed</span>
          <input
            type="range"
            min={0}
            max={SPEEDS}
            value={(Math.log(speed / slowest) / Math.log(1 / slowest)) * SPEEDS}
            aria-valuetext={speedText(speed)}
            onInput={(event) => setSpeed(slowest * (1 / slowest) ** (Number(event.currentTarget.value) / SPEEDS))}
          />
          <output>{speedText(speed)}</output>
        </label>
      </div>
      <label class="slider time">
        <span>Time</span>
        <input type="range" min={0} max={duration} step="any" value={time} aria-valuetext={moment(time)} onInput={(event) => (play(false), seek(Number(event.currentTarget.value)))} />
        <output>{time.toFixed(rtt < 0.01 ? 4 : 3)} s</output>
      </label>
      <Strip checked={checked} hops={hops} time={time} span={Math.max(speed * 12, 4 * rtt)} seek={(at) => (play(false), seek(at))} dark={dark} colours={colours} />
      <p class="soft small">
        A block is a data packet, a thin bar an acknowledgement. A block with a gap is a retransmission, one with a red frame has an
        ECN mark, a cross is a dropped packet. A round trip without queues takes {timeText(rtt)}. {hops && `${many(hops.columns.entered.length)} hops are loaded.`}
      </p>
    </section>
  );
}

function speedText(speed: number): string {
  return speed >= 0.999 ? "real time" : `1/${Math.round(1 / speed).toLocaleString("en")}`;
}
