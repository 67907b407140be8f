/** Rates of flows: over their life, between two times, in windows; by the formulas of dumbbell.metrics. */

import type { Output, Scenario, Table } from "../engine/protocol";

/** Sample times are multiples of the interval but for rounding, s. */
export const MICRO = 1e-6;

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
export function beginOf(output: Output, scenario: Scenario, flow: number): number {
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
export function rateBetween(
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

/**
 * Throughput of a group of flows, as `dumbbell.metrics.group_throughput`: what each delivered, over the time from
 * the first begin to the last end; NaN if none was there.
 */
export function groupThroughput(output: Output, scenario: Scenario, flows: number[]): number {
  const of = rowsBy(output.tables["series"] ?? {}, "flow");
  const there = flows
    .map((flow) => ({ flow, begin: beginOf(output, scenario, flow), end: endOf(output, scenario, flow) }))
    .filter(({ begin, end }) => end > begin);
  if (!there.length) return NaN;
  const bits = there.map(({ flow, begin, end }) => (end - begin) * rateBetween(output, scenario, flow, of.get(flow) ?? [], "delivered", begin, end));
  const span = Math.max(...there.map(({ end }) => end)) - Math.min(...there.map(({ begin }) => begin));
  return bits.reduce((a, b) => a + b, 0) / span;
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
