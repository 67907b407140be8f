/** How links are used, by the formulas of dumbbell.metrics. */

import type { LinkSpec, Output, Scenario } from "../engine/protocol";
import { PACKET_BITS } from "../runs";
import { MICRO, rowsBy } from "./rates";

export interface LinkSummary {
  utilisation: number;
  queue_mean: number;
  dropped: number;
  lost: number;
  marked: number;
}

export function linkSummaries(output: Output, scenario: Scenario): LinkSummary[] {
  const { links = {} } = output.tables;
  const of = rowsBy(links, "link");
  return scenario.links.map((link, number): LinkSummary => {
    const warmup = (scenario.warmup_ns ?? 0) / 1e9;
    const rows = (of.get(number) ?? []).filter((row) => (links["t"]?.[row] ?? 0) >= warmup - MICRO);
    const [first = 0, last = 0] = [rows[0], rows.at(-1)];
    const grown = (name: string): number => (links[name]?.[last] ?? 0) - (links[name]?.[first] ?? 0);
    const span: [number, number] = [links["t"]?.[first] ?? 0, links["t"]?.[last] ?? 0];
    return {
      utilisation: (8 * grown("sent_bytes")) / capacity(link, ...span),
      queue_mean: rows.reduce((sum, row) => sum + (links["queue_bytes"]?.[row] ?? 0), 0) / rows.length,
      dropped: grown("dropped"),
      lost: grown("lost"),
      marked: grown("marked"),
    };
  });
}

/** The bits that a link could send between two times, as `dumbbell.experiment.capacity`; NaN if that is no limit, or none. */
export function capacity({ rate_bps, rates, trace_ms, bucket_bytes }: LinkSpec, begin: number, end: number): number {
  if (trace_ms) return traceCapacity(trace_ms, begin, end) || NaN;
  if (rates) return lineCapacity(rates, begin, end) || NaN;
  const bucket = begin <= 0 ? 8 * (bucket_bytes ?? 0) : 0;
  return (rate_bps ?? 0) * (end - begin) + bucket || NaN;
}

/** Bits that a time line of rates lets pass between two times. */
function lineCapacity(line: [number, number][], begin: number, end: number): number {
  return line.reduce((sum, [at, bps], step) => {
    const stop = (line[step + 1]?.[0] ?? Infinity) / 1e9;
    return sum + bps * Math.max(Math.min(stop, end) - Math.max(at / 1e9, begin), 0);
  }, 0);
}

/** Bits that a trace (its delivery opportunities, ms) lets pass after one time up to another. It begins anew after its last time. */
function traceCapacity(times: number[], begin: number, end: number): number {
  const period = times.at(-1) ?? 1;
  const opportunities = (until: number): number => {
    const now = Math.floor(until * 1e3 + MICRO);
    const rest = times.findIndex((at) => at > now % period);
    return Math.floor(now / period) * times.length + (rest < 0 ? times.length : rest);
  };
  return PACKET_BITS * (opportunities(end) - opportunities(begin));
}
