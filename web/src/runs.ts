/** Runs of scenarios in workers. */

import { Engine, Pool } from "./engine/client";
import type { Output, Source, Valid } from "./engine/protocol";
import { many } from "./results/format";

/** No more rows of samples, and no more packets in links and queues, are kept in memory. */
const MOST_ROWS = 4e6;
const MOST_HELD = 2e7;
const PACKET_BITS = 12_000;

export const engine = new Engine();
let pool = new Pool();
let poolCode = "";

/** Workers with the code of a scenario; those with older code are closed. */
export function poolFor(code: string): Pool {
  if (code !== poolCode) {
    pool.close();
    [pool, poolCode] = [new Pool(code), code];
  }
  return pool;
}

export interface Runs {
  checked: Valid;
  outputs: Output[];
}

/** The code that a scenario runs; none if no flow has an algorithm of it. */
export const codeOf = ({ toml, beside, code }: Source): string => (toml.includes("own.js:") || beside.includes("own.js:") ? code : "");

/** The scenario that is compared with this one; null if there is none. */
export const besideOf = (source: Source): Source | null => (source.beside ? { ...source, toml: source.beside } : null);

interface Options {
  /** Called with the completed share of all runs. */
  progress?: (share: number) => void;
  signal: AbortSignal;
}

/** Runs a scenario with each of its seeds. */
export function runAll(source: Source, checked: Valid, { progress, signal }: Options): Promise<Output[]> {
  const { seeds } = checked.experiment;
  const shares = seeds.map(() => 0);
  const asked = seeds.map((seed, at) => {
    const report = (done: number): void => {
      shares[at] = done;
      progress?.(shares.reduce((a, b) => a + b, 0) / shares.length);
    };
    return poolFor(codeOf(source)).next().ask({ kind: "run", source, seed }, { progress: report, signal });
  });
  return Promise.all(asked);
}

/** Why a scenario would not fit into the memory of a page; empty if it does. */
export function tooLarge({ scenario, experiment }: Valid): string {
  const rows = (scenario.flows.length * scenario.duration_ns * experiment.seeds.length) / scenario.sample_ns;
  if (rows > MOST_ROWS) {
    return `The samples would have ${many(rows)} rows, and a page takes ${many(MOST_ROWS)}. Write a longer sample, fewer seeds or flows, or use dumbbell run.`;
  }
  const rate = Math.max(...scenario.links.map(({ rate_bps }) => rate_bps ?? 0));
  const held = scenario.links.reduce((sum, { delay_ns, queue }) => {
    const packets = !queue ? 0 : "packets" in queue ? queue.packets : "bytes" in queue ? queue.bytes / 1500 : 0;
    return sum + (rate * delay_ns) / 1e9 / PACKET_BITS + Math.min(packets, 1e9);
  }, 0);
  if (held > MOST_HELD) {
    return `The links and queues can hold ${many(held)} packets, and a page takes ${many(MOST_HELD)}. Write a lower rate, delay or queue, or use dumbbell run.`;
  }
  return "";
}
