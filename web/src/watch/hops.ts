/** The hops of packets that the animation shows: loaded around the moment it is at. */

import { useEffect, useRef, useState } from "preact/hooks";
import type { Engine } from "../engine/client";
import { Cancelled } from "../engine/client";
import type { Hops, Source, Valid } from "../engine/protocol";
import { baseRtt, heldBy, PACKET_BITS, rateOf } from "../runs";

/** Hops that are loaded only for the packets that wait when the animation begins. */
const WAITING_HOPS = 50_000;

/** The longest base RTT, s. */
export function longestRtt({ scenario }: Valid): number {
  return Math.max(...scenario.flows.map((flow) => baseRtt(scenario, flow)), 1e-3);
}

/** How long before a moment packets enter the path that are still in it then, s. */
function stayOf({ scenario }: Valid, rtt: number): number {
  const rates = scenario.links.map(rateOf).filter((rate) => rate > 0);
  const all = rates.reduce((sum, rate) => sum + rate, 0);
  const packets = rates.length ? Math.min(heldBy(scenario) / Math.min(...rates), WAITING_HOPS / all) : 0;
  return 2 * rtt + packets * PACKET_BITS;
}

interface Loaded {
  hops: Hops | null;
  /** When packets are dropped in the whole run, s; null before the first hops. */
  drops: Float64Array | null;
  /** What is said of the animation. */
  said: string;
  say: (said: string) => void;
  /** Loads the hops at a moment unless they are there. */
  need: (at: number) => void;
  /** Whether hops are missing: they are being loaded, or could not be. */
  isWaiting: () => boolean;
}

/** The hops of a run, from those at `time` on. */
export function useHops(engine: () => Engine, checked: Valid, source: Source, seed: number, time: number): Loaded {
  const [hops, setHops] = useState<Hops | null>(null);
  const [said, say] = useState("");
  /** The same as `hops`, without waiting for the page to be drawn. */
  const loaded = useRef<Hops | null>(null);
  const drops = useRef<Float64Array | null>(null);
  const abort = useRef<AbortController | null>(null);
  /** The moment whose hops are missing. */
  const wanted = useRef<number | null>(null);
  const rtt = longestRtt(checked);
  const stay = stayOf(checked, rtt);

  const show = (found: Hops | null): void => {
    wanted.current = null;
    loaded.current = found;
    setHops(found);
  };
  const load = (at: number): void => {
    if (wanted.current !== null && Math.abs(wanted.current - at) < 1e-9) return;
    wanted.current = at;
    abort.current?.abort();
    const controller = new AbortController();
    abort.current = controller;
    say("Running to this moment …");
    const sample = Math.min(checked.scenario.sample_ns / 1e9, Math.max(checked.scenario.duration_ns / 1e9 / 20_000, rtt / 20));
    const task = { kind: "watch" as const, source, seed, from: at, lead: stay + 0.5 * rtt + 0.2, sample, allDrops: drops.current === null };
    engine().ask(task, { signal: controller.signal }).then(
      (found) => {
        drops.current ??= found.drops;
        show(found);
        say("");
      },
      (error: Error) => {
        if (!(error instanceof Cancelled)) say(error.message);
      },
    );
  };

  useEffect(() => {
    drops.current = null;
    show(null);
    load(time);
    return () => abort.current?.abort();
  }, [source, seed]);

  const need = (at: number): void => {
    const there = loaded.current;
    if (!there || at < there.from + (there.from > 0 ? stay : 0) || at > there.until) return load(at);
    if (wanted.current === null) return;
    abort.current?.abort();
    wanted.current = null;
    say("");
  };
  return { hops, drops: drops.current, said, say, need, isWaiting: () => wanted.current !== null };
}
