/** Metrics of runs, by the formulas of dumbbell.metrics. */

import type { FlowSpec, Output, Scenario } from "../engine/protocol";
import { linkSummaries, type LinkSummary } from "./links";
import { beginOf, endOf, groupThroughput, rateBetween, rowsBy, throughputs } from "./rates";
import { transferSummaries, type TransferSummary } from "./transfers";

/** Jain's index: 1 if all are equal, 1/n if one has everything; NaN if all are 0. */
export function jain(rates: number[]): number {
  const greatest = Math.max(...rates);
  if (!(greatest > 0)) return NaN;
  const scaled = rates.map((rate) => rate / greatest);
  const sum = scaled.reduce((a, b) => a + b, 0);
  return sum ** 2 / (scaled.length * scaled.reduce((a, b) => a + b * b, 0));
}

export interface FlowSummary {
  sent: number;
  retransmitted: number;
  lost: number;
  throughput: number;
  goodput: number;
  queue_delay_mean: number;
  queue_delay_p95: number;
  rtt_mean: number;
  retransmission_share: number;
  timeouts: number;
  took: number;
}

export interface Summary {
  flows: FlowSummary[];
  links: LinkSummary[];
  /** By flow; null for one that does not consist of transfers. */
  transfers: (TransferSummary | null)[];
  jain: number;
  together: number;
}

/** What the flows and links of a run achieved. */
export function summarise(output: Output, scenario: Scenario): Summary {
  const { flows = {}, series = {} } = output.tables;
  const of = rowsBy(series, "flow");
  const column = (name: string, flow: number): number => flows[name]?.[flow] ?? NaN;
  const each = scenario.flows.map((_, flow): FlowSummary => {
    const rate = (counter: string): number =>
      rateBetween(output, scenario, flow, of.get(flow) ?? [], counter, 0, Infinity);
    return {
      sent: column("sent", flow),
      retransmitted: column("retransmitted", flow),
      lost: column("lost", flow),
      throughput: rate("delivered"),
      goodput: rate("received"),
      queue_delay_mean: column("queue_delay_mean", flow),
      queue_delay_p95: column("queue_delay_p95", flow),
      rtt_mean: column("rtt_mean", flow),
      retransmission_share: column("retransmitted", flow) / Math.max(column("sent", flow), 1),
      timeouts: column("timeouts", flow),
      took: beginOf(output, scenario, flow) === column("start", flow) ? column("completed", flow) - column("start", flow) : NaN,
    };
  });
  return {
    flows: each,
    links: linkSummaries(output, scenario),
    transfers: transferSummaries(output, scenario),
    jain: fairness(output, scenario),
    together: groupThroughput(output, scenario, [...scenario.flows.keys()]),
  };
}

/**
 * The flows that compete for a rate, by their numbers. Flows of many transfers do not: what they send depends
 * on when transfers arrive.
 */
export function competing({ flows }: Scenario): number[] {
  const isOfTransfers = ({ transfers, app }: FlowSpec): boolean => transfers !== undefined || "requests" in (app ?? {});
  return flows.flatMap((spec, flow) => (isOfTransfers(spec) ? [] : [flow]));
}

/** Jain's index of the competing flows over the time in which all of them are there; NaN with fewer than two. */
function fairness(output: Output, scenario: Scenario): number {
  const flows = competing(scenario);
  const of = rowsBy(output.tables["series"] ?? {}, "flow");
  const since = Math.max(...flows.map((flow) => beginOf(output, scenario, flow)));
  const until = Math.min(...flows.map((flow) => endOf(output, scenario, flow)));
  const shares = flows.map((flow) => rateBetween(output, scenario, flow, of.get(flow) ?? [], "delivered", since, until) || 0);
  return flows.length > 1 && until > since ? jain(shares) : NaN;
}

/** Jain's index in windows, over the competing flows that are there throughout; NaN with fewer than two. */
export function jainOverTime(output: Output, scenario: Scenario): { t: number[]; index: number[] } {
  const { t, rates } = throughputs(output, scenario, true);
  const flows = competing(scenario);
  const index = t.map((_, at) => {
    const there = flows.map((flow) => rates[flow]?.[at] ?? NaN).filter((rate) => !Number.isNaN(rate));
    return there.length > 1 ? jain(there) : NaN;
  });
  return { t, index };
}

/** The mean of each metric over the rows in which it is known. */
export function averaged<T extends object>(rows: T[]): T {
  const keys = Object.keys(rows[0] ?? {}) as (keyof T)[];
  return Object.fromEntries(keys.map((key) => [key, mean(rows.map((row) => row[key] as number)).value])) as T;
}

/** A count of packets of flows as a share of all that they sent. */
export const shareOf = (flows: FlowSummary[], count: "retransmitted" | "lost"): number =>
  flows.reduce((sum, flow) => sum + flow[count], 0) / flows.reduce((sum, { sent }) => sum + sent, 0);

/** A row of a table of flows. */
export interface FlowRow extends FlowSummary {
  loss_share: number;
}

/**
 * What flows achieved in a run, as tables have it: means, and shares of all their packets. Over UDP and RTP
 * nothing is retransmitted. What another sender marks lost may arrive, so there its retransmissions count.
 */
export function rowOfFlows(flows: FlowSummary[], isUnreliable: boolean): FlowRow {
  return {
    ...averaged(flows),
    retransmission_share: isUnreliable ? NaN : shareOf(flows, "retransmitted"),
    loss_share: isUnreliable ? shareOf(flows, "lost") : NaN,
  };
}

/** 97.5 % quantiles of Student's t for 1, 2, ... degrees of freedom. */
const STUDENT = [
  12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.16, 2.145, 2.131, 2.12,
  2.11, 2.101, 2.093, 2.086, 2.08, 2.074, 2.069, 2.064, 2.06, 2.056, 2.052, 2.048, 2.045, 2.042,
];

/** The quantile for more degrees of freedom: a series around that of the normal distribution. */
function student(freedom: number): number {
  const z = 1.959963984540054;
  return STUDENT[freedom - 1] ?? z + (z ** 3 + z) / (4 * freedom) + (5 * z ** 5 + 16 * z ** 3 + 3 * z) / (96 * freedom ** 2);
}

export interface Estimate {
  value: number;
  /** Half the width of the 95 % interval; NaN with one value. */
  half: number;
}

/** The mean of the values that are known, and its 95 % interval. */
export function mean(values: number[]): Estimate {
  const known = values.filter((value) => !Number.isNaN(value));
  const value = known.reduce((a, b) => a + b, 0) / known.length;
  if (known.length < 2) return { value, half: NaN };
  const variance = known.reduce((sum, one) => sum + (one - value) ** 2, 0) / (known.length - 1);
  return { value, half: student(known.length - 1) * Math.sqrt(variance / known.length) };
}
