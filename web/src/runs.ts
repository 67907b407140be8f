/** Runs of scenarios in workers. */

import { Engine, Pool } from "./engine/client";
import type { FlowSpec, LinkSpec, Output, PathSpec, Scenario, Source, Valid } from "./engine/protocol";
import { many } from "./results/format";

/** No more rows of tables, and no more packets in links and queues, are kept in memory. */
const MOST_ROWS = 2e7;
const MOST_HELD = 2e7;
/** Of an algorithm, about. */
const INTERNALS = 20;
/** Of a packet, and of a line of a trace. */
export const PACKET_BITS = 12_000;
/** Of a stack that is as by default (`Stack::linux` in crates/tcp), packets. */
const RECEIVE_WINDOW = 1 << 20;

export const engine = new Engine();
const pools = new Map<string, Pool>();

/** Workers with the code of a scenario; those with other code are closed unless they have work. */
export function poolFor(code: string): Pool {
  for (const [other, pool] of pools) {
    if (other === code || pool.isBusy) continue;
    pool.close();
    pools.delete(other);
  }
  const pool = pools.get(code) ?? new Pool(code);
  pools.set(code, pool);
  return pool;
}

export interface Runs {
  /** What has run. */
  of: Source;
  checked: Valid;
  outputs: Output[];
}

/** The code that a scenario runs; none if no flow has an algorithm of it. */
export const codeOf = ({ toml, beside, code }: Source): string => (toml.includes("own.js:") || beside.includes("own.js:") ? code : "");

/** The scenario that is compared with this one; null if there is none. */
export const besideOf = (source: Source): Source | null => (source.beside ? { ...source, toml: source.beside } : null);

/** Whether two scenarios run alike, whatever they are compared with. */
export const isSame = (a: Source | null, b: Source | null): boolean => a?.toml === b?.toml && a?.code === b?.code && a?.traces === b?.traces;

interface Options {
  /** Called with the completed share of all runs. */
  progress?: (share: number) => void;
  signal: AbortSignal;
}

/** Runs a scenario with each of its seeds, unless a page refuses it. */
export async function runAll(source: Source, checked: Valid, { progress, signal }: Options): Promise<Output[]> {
  const refused = refusalOf(checked);
  if (refused) throw new Error(refused);
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

/** The rate of a link, its maximum if it varies, bit/s; 0 if it has none. */
export const rateOf = ({ rate_bps, rates, trace_ms }: LinkSpec): number =>
  rate_bps ?? Math.max(...(rates ?? []).map(([, rate]) => rate), trace_ms ? (trace_ms.length * PACKET_BITS * 1e3) / (trace_ms.at(-1) ?? 1) : 0);

/** The paths of a flow: one for each subflow. */
export const pathsOf = (flow: FlowSpec): PathSpec[] => [flow, ...(flow.additional_subflows ?? [])];

/** The base RTT of a path, s: its links' delays and what is left for the way back. */
export function pathRtt({ links }: Scenario, { path, return_path = [], return_delay_ns = 0 }: PathSpec): number {
  const delays = new Map(links.map((link) => [link.name, link.delay_ns]));
  return [...path, ...return_path].reduce((sum, name) => sum + (delays.get(name) ?? 0), return_delay_ns) / 1e9;
}

/** The longest base RTT of a flow, s. */
export const baseRtt = (scenario: Scenario, flow: FlowSpec): number => Math.max(...pathsOf(flow).map((path) => pathRtt(scenario, path)));

/** How many packets links, queues and the network beyond them can hold. */
export function heldBy({ links, flows }: Scenario): number {
  const fastest = Math.max(...links.map(rateOf)) || Infinity;
  const held = links.reduce((sum, link) => {
    const [{ delay_ns, queue }, rate] = [link, rateOf(link) || fastest];
    const packets = !queue ? Infinity : "packets" in queue ? queue.packets : "bytes" in queue ? queue.bytes / 1500 : (queue.ns * rate) / 1e9 / PACKET_BITS;
    return sum + (delay_ns ? (rate * delay_ns) / 1e9 / PACKET_BITS : 0) + packets;
  }, 0);
  const windows = flows.reduce((sum, flow) => sum + (flow.stack?.receive_window ?? RECEIVE_WINDOW) * pathsOf(flow).length, 0);
  return Math.min(held, windows);
}

/** Why a page does not run a scenario, which would not fit into its memory or has seeds that it cannot pass on; empty if it does. */
export function refusalOf({ scenario, experiment }: Valid): string {
  if (!experiment.seeds.every(Number.isSafeInteger)) {
    return `A page takes seeds up to ${Number.MAX_SAFE_INTEGER.toLocaleString("en")}. Write a smaller seed, or use dumbbell run.`;
  }
  const samples = (scenario.flows.length * scenario.duration_ns * experiment.seeds.length) / scenario.sample_ns;
  const rows = samples * (scenario.internals ? 1 + INTERNALS : 1);
  if (rows > MOST_ROWS) {
    const remedy = "Write a longer sample, fewer seeds or flows, internals = false, or use dumbbell run.";
    return `The samples and internal variables would have ${many(rows)} rows, and a page takes ${many(MOST_ROWS)}. ${remedy}`;
  }
  const held = heldBy(scenario);
  if (held > MOST_HELD) {
    return `The links and queues can hold ${many(held)} packets, and a page takes ${many(MOST_HELD)}. Write a lower rate, delay or queue, or use dumbbell run.`;
  }
  return "";
}
