/** How long transfers took, by the formulas of dumbbell.metrics. */

import type { FlowSpec, Output, Scenario } from "../engine/protocol";
import { pathsOf } from "../runs";
import { capacity } from "./links";
import { beginOf, rowsBy } from "./rates";

/** A transfer that started after the warm-up. */
export interface Transfer {
  isComplete: boolean;
  /** From its start until it was complete, or until the run ended, s. */
  time: number;
  /** How long it would take on an idle path, s; NaN if no link of the path has a rate. */
  idle: number;
}

export interface TransferSummary {
  transfers: number;
  completed_share: number;
  completion_p50: number;
  completion_p95: number;
  completion_p99: number;
  slowdown_mean: number;
  slowdown_p99: number;
}

/** The transfers of each flow that has any, by its number. */
export function transfersOf(output: Output, scenario: Scenario): Map<number, Transfer[]> {
  const { transfers = {}, flows = {} } = output.tables;
  const found = [...rowsBy(transfers, "flow")].map(([flow, rows]) => {
    const begin = beginOf(output, scenario, flow);
    const [spec, base] = [scenario.flows[flow] as FlowSpec, flows["base_rtt"]?.[flow] ?? NaN];
    const rate = pathRate(scenario, spec);
    const counted = rows.filter((row) => (transfers["start"]?.[row] ?? 0) >= begin);
    const each = counted.map((row): Transfer => {
      const [start, completed] = [transfers["start"]?.[row] ?? NaN, transfers["completed"]?.[row] ?? NaN];
      // A response to a request needs no handshake.
      const idle = (spec.app ? 1 : 2) * base + (8 * (transfers["bytes"]?.[row] ?? NaN)) / rate;
      const isComplete = !Number.isNaN(completed);
      return { isComplete, time: (isComplete ? completed : scenario.duration_ns / 1e9) - start, idle };
    });
    return [flow, each] as const;
  });
  return new Map(found.filter(([, each]) => each.length));
}

/** The mean rate of the slowest link of a flow's paths, bit/s; NaN if none has a rate. */
function pathRate({ links, duration_ns }: Scenario, flow: FlowSpec): number {
  const crossed = new Set(pathsOf(flow).flatMap(({ path }) => path));
  const end = duration_ns / 1e9;
  const rates = links.filter(({ name }) => crossed.has(name)).map((link) => capacity(link, 0, end) / end);
  const slowest = Math.min(...rates.filter((rate) => !Number.isNaN(rate)));
  return Number.isFinite(slowest) ? slowest : NaN;
}

/** The summaries of flows by their numbers; null for a flow without transfers. */
export function transferSummaries(output: Output, scenario: Scenario): (TransferSummary | null)[] {
  const found = transfersOf(output, scenario);
  return scenario.flows.map((_, flow) => (found.has(flow) ? summaryOf(found.get(flow) ?? []) : null));
}

export function summaryOf(transfers: Transfer[]): TransferSummary {
  const complete = transfers.filter(({ isComplete }) => isComplete);
  const slowdowns = transfers.map(({ isComplete, time, idle }) => ({ isComplete, time: time / idle }));
  return {
    transfers: transfers.length,
    completed_share: complete.length / transfers.length,
    completion_p50: quantile(transfers, 0.5),
    completion_p95: quantile(transfers, 0.95),
    completion_p99: quantile(transfers, 0.99),
    slowdown_mean: complete.reduce((sum, { time, idle }) => sum + time / idle, 0) / complete.length,
    slowdown_p99: quantile(slowdowns, 0.99),
  };
}

type Observed = Pick<Transfer, "isComplete" | "time">;

/**
 * The share of transfers that take longer than each time at which one was complete, in order. A transfer that
 * was not complete took longer than it was observed. Source: Kaplan and Meier, "Nonparametric Estimation from
 * Incomplete Observations", JASA 53 (1958).
 */
export function survival(transfers: Observed[]): [time: number, share: number][] {
  const found: [number, number][] = [];
  let [share, atRisk] = [1, transfers.length];
  // At one time completions come first: what ends there incomplete was there when they were.
  for (const { isComplete, time } of transfers.toSorted((a, b) => a.time - b.time || Number(b.isComplete) - Number(a.isComplete))) {
    if (isComplete) {
      share *= 1 - 1 / atRisk;
      if (found.at(-1)?.[0] === time) found.pop();
      found.push([time, share]);
    }
    atRisk -= 1;
  }
  return found;
}

/** For rounding of shares, which are products. */
const ROUNDING = 1e-9;

/** The time within which a share of the transfers completes: interpolated if all are complete; infinite if the run is too short for it. */
function quantile(transfers: Observed[], q: number): number {
  if (transfers.some(({ time }) => Number.isNaN(time))) return NaN;
  if (transfers.some(({ isComplete }) => !isComplete)) return survival(transfers).find(([, share]) => share <= 1 - q + ROUNDING)?.[0] ?? Infinity;
  const sorted = transfers.map(({ time }) => time).sort((a, b) => a - b);
  const at = q * (sorted.length - 1);
  const low = sorted[Math.floor(at)] ?? NaN;
  return low + (at - Math.floor(at)) * ((sorted[Math.ceil(at)] ?? NaN) - low);
}
