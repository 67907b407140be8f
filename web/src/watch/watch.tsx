/** The animation of the path, in slow motion, with the windows in step below it. */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Engine } from "../engine/client";
import type { Source, Valid } from "../engine/protocol";
import { pixels, save } from "../results/export";
import { many, moment } from "../results/format";
import { PACKETS, themed, variable } from "../results/looks";
import { flowLooks } from "../results/panels";
import { timeText } from "../scenario/quantities";
import { fileName } from "../share/share";
import { longestRtt, useHops } from "./hops";
import { Path } from "./path";
import { Film } from "./stage";
import { Strip } from "./strip";

interface Props {
  engine: () => Engine;
  checked: Valid;
  source: Source;
  seed: number;
  /** Says which run it is, if there are several. */
  which: string;
  /** Where to begin, s. */
  from: number;
  dark: boolean;
  moved: (time: number) => void;
  playing: boolean;
  play: (playing: boolean) => void;
}

/** Some round trips after the last flow has started, when there is most to see. */
function firstMoment({ scenario }: Valid, rtt: number): number {
  return Math.max(...scenario.flows.map(({ start_ns }) => start_ns ?? 0)) / 1e9 + 6 * rtt;
}

/** Each flow in a colour of its own. */
function packetColours(checked: Valid): string[] {
  const looks = flowLooks(checked);
  const seen = new Set<string>();
  return checked.scenario.flows.map((_, flow) => {
    const own = looks.find((look) => look.flow === flow)?.colour ?? "";
    const free = own.startsWith("#") && !seen.has(own) && themed(own) === own ? own : (PACKETS.find((colour) => !seen.has(colour)) ?? PACKETS[flow % PACKETS.length] ?? own);
    seen.add(free);
    return free;
  });
}

/** Moves the animation on while it plays: by `speed` seconds of the run in a second. */
function usePlay(playing: boolean, film: Film | null, speed: number, advance: (by: number) => void): void {
  useEffect(() => {
    if (!playing || !film) return undefined;
    let [frame, before] = [0, performance.now()];
    const tick = (at: number): void => {
      const by = Math.min((at - before) / 1e3, 0.1) * speed;
      before = at;
      advance(by);
      frame = requestAnimationFrame(tick);
    };
    frame = requestAnimationFrame(tick);
    return () => cancelAnimationFrame(frame);
  }, [playing, film, speed]);
}

export function Watch({ engine, checked, source, seed, which, from, dark, moved, playing, play }: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const rtt = longestRtt(checked);
  const duration = checked.scenario.duration_ns / 1e9;
  // A round trip takes four seconds to begin with.
  const [speed, setSpeed] = useState(() => Math.min(rtt / 4, 1));
  const [time, setTime] = useState(() => Math.min(from || firstMoment(checked, rtt), duration));
  const now = useRef(time);
  const { hops, drops, said, say, need, isWaiting } = useHops(engine, checked, source, seed, time);
  const film = useMemo(() => (hops ? new Film(hops, checked.scenario) : null), [hops]);
  const colours = useMemo(() => packetColours(checked).map(themed), [checked, dark]);

  const seek = (to: number): void => {
    const at = Math.min(Math.max(to, 0), duration);
    now.current = at;
    setTime(at);
    moved(at);
    need(at);
  };
  const stopAt = (to: number): void => {
    play(false);
    seek(to);
  };
  usePlay(playing, film, speed, (by) => {
    if (isWaiting()) return;
    if (now.current + by >= duration) play(false);
    seek(now.current + by);
  });
  const jump = (): void => {
    if (!drops) return;
    const next = drops.find((at) => at > time + 1e-6 + 0.5 * speed);
    if (next === undefined) return say(drops.length ? "No loss comes after this moment." : "No packet is lost in this run.");
    say("");
    // A moment before it, so that it is seen to happen; while paused, a moment after it.
    seek(Math.max(next + (playing ? -0.4 : 0.1) * speed, 0));
  };
  const picture = async (): Promise<void> => {
    const drawn = canvas.current;
    if (drawn) save(`${fileName(checked.experiment.title)}-path.png`, await pixels(drawn, drawn.width, drawn.height, variable("--paper")), "image/png");
  };
  const savePicture = (): void => void picture().catch((error: Error) => say(error.message));

  return (
    <section class="watch" aria-label="Animation of the path">
      <div class="stage">
        <Path canvas={canvas} checked={checked} film={film} time={time} drops={0.7 * speed} colours={colours} dark={dark} />
        {said && <p class="said" role="status">{said}</p>}
      </div>
      <div class="row controls">
        <button type="button" class="main" onClick={() => play(!playing)} aria-pressed={playing}>
          {playing ? "Pause" : "Play"}
        </button>
        <button type="button" onClick={() => stopAt(time - rtt / 40)} aria-label="A step back">◂ Step</button>
        <button type="button" onClick={() => stopAt(time + rtt / 40)} aria-label="A step forward">Step ▸</button>
        <button type="button" onClick={jump}>Next loss</button>
        <button type="button" onClick={savePicture} disabled={!film}>Save as PNG</button>
        <Speed speed={speed} change={setSpeed} />
      </div>
      <label class="slider time">
        <span>Time</span>
        <input type="range" min={0} max={duration} step="any" value={time} aria-valuetext={moment(time)} onInput={(event) => stopAt(Number(event.currentTarget.value))} />
        <output>{time.toFixed(rtt < 0.01 ? 4 : 3)} s</output>
      </label>
      <Strip checked={checked} hops={hops} time={time} span={Math.max(speed * 12, 4 * rtt)} seek={stopAt} dark={dark} colours={colours} />
      <p class="soft small">
        {which}A block is a data packet, a thin bar an acknowledgement. A block with a gap is a retransmission, one with a red frame has an
        ECN mark, a cross is a dropped packet. A round trip without queues takes {timeText(rtt)}. {hops && `${many(hops.columns.entered.length)} hops are loaded.`}
      </p>
    </section>
  );
}

const SPEEDS = 300;
/** From a ten-thousandth of real time to real time. */
const slowest = 1e-4;

function Speed({ speed, change }: { speed: number; change: (speed: number) => void }) {
  return (
    <label class="slider speed">
      <span>Speed</span>
      <input
        type="range"
        min={0}
        max={SPEEDS}
        value={(Math.log(speed / slowest) / Math.log(1 / slowest)) * SPEEDS}
        aria-valuetext={speedText(speed)}
        onInput={(event) => change(slowest * (1 / slowest) ** (Number(event.currentTarget.value) / SPEEDS))}
      />
      <output>{speedText(speed)}</output>
    </label>
  );
}

function speedText(speed: number): string {
  return speed >= 0.999 ? "real time" : `1/${Math.round(1 / speed).toLocaleString("en")}`;
}
