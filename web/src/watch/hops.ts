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
  /** When packets are dropped in the whole run, s; empty before the first hops. */
  drops: Float64Array;
  /** What is said of the animation. */
  said: string;
  say: (said: string) => void;
  /** Loads the hops at a moment unless they are there. */
  need: (at: number) => void;
}

/** The hops of a run, from those at `time` on. */
export function useHops(engine: () => Engine, checked: Valid, source: Source, seed: number, time: number): Loaded {
  const [hops, setHops] = useState<Hops | null>(null);
  const [said, say] = useState("");
  const drops = useRef<Float64Array>(new Float64Array());
  const abort = useRef<AbortController | null>(null);
  const wanted = useRef<number | null>(null);
  const rtt = longestRtt(checked);
  const stay = stayOf(checked, rtt);

  const load = (at: number): void => {
    if (wanted.current !== null && Math.abs(wanted.current - at) < 1e-9) return;
    wanted.current = at;
    abort.current?.abort();
    abort.current = new AbortController();
    say("Running to this moment …");
    const sample = Math.min(checked.scenario.sample_ns / 1e9, Math.max(checked.scenario.duration_ns / 1e9 / 20_000, rtt / 20));
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
    load(time);
    return () => abort.current?.abort();
  }, [source, seed]);

  const need = (at: number): void => {
    if (!hops || at < hops.from + (hops.from > 0 ? stay : 0) || at > hops.until) load(at);
  };
  return { hops, drops: drops.current, said, say, need };
}
