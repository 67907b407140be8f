/** Metrics of runs, by the formulas of dumbbell.metrics. */

import type { LinkSpec, Output, Scenario, Table } from "../engine/protocol";
import { PACKET_BITS } from "../runs";

const MICRO = 1e-6;

/** Rows of a table by the value of its column `by`, in order. */
export function rowsBy(table: Table, by: string): Map<number, number[]> {
  const found = new Map<number, number[]>();
  table[by]?.forEach((key, row) => {
    const rows = found.get(key);
    if (rows) rows.push(row);
    else found.set(key, [row]);
  });
  return found;
}

/** When a flow ends: it has sent all, or is stopped, or the experiment is over. */
export function endOf(output: Output, scenario: Scenario, flow: number): number {
  const completed = output.tables["flows"]?.["completed"]?.[flow] ?? NaN;
  const stop = scenario.flows[flow]?.stop_ns;
  const ends = [scenario.duration_ns, stop ?? Infinity].map((ns) => ns / 1e9);
  return Math.min(...ends, Number.isNaN(completed) ? Infinity : completed);
}

/** When a flow begins to count: when it starts or the warm-up ends, whichever is later; its end if it is over by then. */
function beginOf(output: Output, scenario: Scenario, flow: number): number {
  const warmup = Math.min((scenario.warmup_ns ?? 0) / 1e9, endOf(output, scenario, flow));
  return Math.max(startOf(output, flow), warmup);
}

function startOf(output: Output, flow: number): number {
  return output.tables["flows"]?.["start"]?.[flow] ?? 0;
}

/** A counter of a flow at a time; the table of flows counts from when the flow begins to count. */
function counted(output: Output, scenario: Scenario, flow: number, rows: number[], counter: string, at: number): number {
  const { flows = {}, series = {} } = output.tables;
  const isLast = rows.findIndex((row) => (series["t"]?.[row] ?? 0) > at + MICRO) < 0; // nothing was sampled after it
  if (!isLast) return sampled(output, flow, rows, counter, at);
  return (flows[counter]?.[flow] ?? 0) + sampled(output, flow, rows, counter, beginOf(output, scenario, flow));
}

/** A counter of a flow at a time by its samples: between them it grew evenly. */
function sampled(output: Output, flow: number, rows: number[], counter: string, at: number): number {
  const { flows = {}, series = {} } = output.tables;
  const [t, values] = [series["t"] ?? new Float64Array(), series[counter] ?? new Float64Array()];
  const completed = flows["completed"]?.[flow] ?? NaN;
  const next = rows.findIndex((row) => (t[row] ?? 0) > at + MICRO);
  const before = (next < 0 ? rows.at(-1) : rows[next - 1]) ?? -1;
  const low = before < 0 ? 0 : (values[before] ?? 0);
  if (next < 0) return low;
  const after = rows[next] ?? 0;
  const left = Math.max(startOf(output, flow), before < 0 ? -Infinity : (t[before] ?? 0));
  const right = Math.min(t[after] ?? 0, Number.isNaN(completed) ? Infinity : completed);
  const share = right > left ? Math.min(Math.max((at - left) / (right - left), 0), 1) : 0;
  return low + share * ((values[after] ?? 0) - low);
}

/** The rate at which a counter of bytes grew, bit/s; NaN if the flow was not there. */
function rateBetween(
  output: Output,
  scenario: Scenario,
  flow: number,
  rows: number[],
  counter: string,
  since: number,
  until: number,
): number {
  const begin = Math.max(beginOf(output, scenario, flow), since);
  const end = Math.min(endOf(output, scenario, flow), until);
  if (end <= begin) return NaN;
  const at = (time: number): number => counted(output, scenario, flow, rows, counter, time);
  return (8 * (at(end) - at(begin))) / (end - begin);
}

/** Jain's index: 1 if all are equal, 1/n if one has everything. */
export function jain(rates: number[]): number {
  const greatest = Math.max(...rates);
  if (!(greatest > 0)) return 1;
  const scaled = rates.map((rate) => rate / greatest);
  const sum = scaled.reduce((a, b) => a + b, 0);
  return sum ** 2 / (scaled.length * scaled.reduce((a, b) => a + b * b, 0));
}

export interface FlowSummary {
  throughput: number;
  goodput: number;
  queue_delay_mean: number;
  queue_delay_p95: number;
  rtt_mean: number;
  retransmission_share: number;
  timeouts: number;
  took: number;
}

export interface LinkSummary {
  utilisation: number;
  queue_mean: number;
  dropped: number;
  lost: number;
  marked: number;
}

export interface Summary {
  flows: FlowSummary[];
  links: LinkSummary[];
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
  const begins = scenario.flows.map((_, flow) => beginOf(output, scenario, flow));
  const since = Math.max(...begins);
  const until = Math.min(...scenario.flows.map((_, flow) => endOf(output, scenario, flow)));
  const shares = scenario.flows.map(
    (_, flow) => rateBetween(output, scenario, flow, of.get(flow) ?? [], "delivered", since, until) || 0,
  );
  const delivered = scenario.flows.reduce((sum, _, flow) => sum + column("delivered", flow), 0);
  const begin = Math.min(...begins);
  const end = Math.max(...scenario.flows.map((_, flow) => endOf(output, scenario, flow)));
  return {
    flows: each,
    links: linkSummaries(output, scenario),
    jain: scenario.flows.length > 1 && until > since ? jain(shares) : NaN,
    together: end > begin ? (8 * delivered) / (end - begin) : NaN,
  };
}

function linkSummaries(output: Output, scenario: Scenario): LinkSummary[] {
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
function capacity({ rate_bps, rates, trace_ms, bucket_bytes }: LinkSpec, begin: number, end: number): number {
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

/** The width of the windows of figures, s: 1 s, or a 50th of a shorter run; whole samples. */
export function windowWidth(scenario: Scenario): number {
  const sample = scenario.sample_ns / 1e9;
  const width = Math.min(1, scenario.duration_ns / 1e9 / 50);
  return Math.max(Math.round(width / sample), 1) * sample;
}

/** Throughput of every flow in windows back to back: times of their ends, and bit/s by flow. */
export interface Windows {
  t: number[];
  rates: number[][];
}

/** As `dumbbell.metrics.windows`; `whole` leaves out the windows in which a flow starts or ends. */
export function throughputs(output: Output, scenario: Scenario, whole = false): Windows {
  const width = windowWidth(scenario);
  const of = rowsBy(output.tables["series"] ?? {}, "flow");
  const found = scenario.flows.map((_, flow) => windowed(output, scenario, flow, of.get(flow) ?? [], width, whole));
  const count = Math.max(...found.map(({ length }) => length), 1);
  const t = Array.from({ length: count }, (_, at) => (at + 1) * width);
  return { t, rates: found.map((rates) => t.map((_, at) => rates[at] ?? NaN)) };
}

function windowed(output: Output, scenario: Scenario, flow: number, rows: number[], width: number, whole: boolean): number[] {
  const { series = {} } = output.tables;
  const [times, values] = [series["t"] ?? new Float64Array(), series["delivered"] ?? new Float64Array()];
  const [start, end] = [startOf(output, flow), endOf(output, scenario, flow)];
  if (!(end > start)) return [];
  const number = Math.ceil(end / width - MICRO);
  // A rest of less than half a window belongs to the window before.
  const left = whole || end / width >= number - 0.5 ? number : number - 1;
  const last = Math.max(left, Math.floor(start / width + MICRO) + 1);
  let [row, before] = [0, 0];
  return Array.from({ length: last }, (_, at) => {
    const [begin, until] = [at * width, (at + 1) * width];
    while (row < rows.length && (times[rows[row] ?? 0] ?? 0) <= until + MICRO * width) row += 1;
    const isLast = at + 1 === last;
    const now = isLast ? counted(output, scenario, flow, rows, "delivered", end) : row > 0 ? (values[rows[row - 1] ?? 0] ?? 0) : 0;
    const [late, early] = [start - begin, until - end];
    const active = width - Math.max(late, 0) - (isLast ? early : 0);
    const rate = (8 * (now - before)) / active;
    before = now;
    const isFull = late <= MICRO && early <= MICRO;
    return active > MICRO && (isFull || !whole) ? rate : NaN;
  });
}

/** Jain's index in each window, over the flows that are there; NaN with fewer than two. */
export function jainOverTime(rates: number[][]): number[] {
  return (rates[0] ?? []).map((_, at) => {
    const there = rates.map((flow) => flow[at] ?? NaN).filter((rate) => !Number.isNaN(rate));
    return there.length > 1 ? jain(there) : NaN;
  });
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
