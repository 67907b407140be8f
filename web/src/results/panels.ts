/** Which panels a result has, and what is drawn in each. */

import type { Output, Scenario, Table, Valid } from "../engine/protocol";
import { lookOf } from "./columns";
import { DASHES, isBbr, linesOf, STATES, styled, styleOf, type Line } from "./looks";
import { competing, jainOverTime } from "./metrics";
import { rowsBy, throughputs } from "./rates";
import { survival, transfersOf } from "./transfers";
import { pathsOf } from "../runs";

/** A line with one value for each time; with several seeds also the range over them. */
export interface Curve {
  name: string;
  /** The flow, to hide all its lines at once; -1 if it belongs to none. */
  flow: number;
  colour: string;
  width: number;
  dash: number[];
  values: (number | null)[];
  low?: (number | null)[];
  high?: (number | null)[];
  /** Whether the area below it is filled. */
  filled?: boolean;
}

export interface Span {
  begin: number;
  end: number;
  state: number;
}

export interface Panel {
  id: string;
  title: string;
  unit: string;
  t: number[];
  curves: Curve[];
  /** Instead of curves: states of flows over time. */
  bands?: { name: string; spans: Span[] }[];
  /** Whether its lines are other ones than those of the legend, and need a key. */
  isKeyed?: boolean;
  /** The maximum of the axis. */
  most?: number;
  /** When the warm-up ends, s; what happens before does not count. */
  warmup?: number;
  /** Instead of the time of the run: `t` are durations, on a logarithmic axis from one to another. */
  durations?: [number, number];
}

/** What the time before the end of the warm-up is called, as in dumbbell.figures. */
export const WARMUP = "warm-up";

/** The points of a curve of completion times. */
const POINTS = 400;

/** More flows than this cannot be told apart: these are drawn, of each [[flow]] in turn. */
export const MOST_FLOWS = 12;

export interface FlowLook extends Line {
  /** Its number. */
  flow: number;
  name: string;
  label: string;
}

/** The flows that are drawn, by their numbers. */
function drawnOf({ names, scenario }: Valid): number[] {
  if (scenario.flows.length <= MOST_FLOWS) return scenario.flows.map((_, flow) => flow);
  let next = 0;
  const tables = names.map((copies) => copies.map(() => next++));
  const turns = Array.from({ length: MOST_FLOWS }, (_, turn) => tables.flatMap((flows) => flows[turn] ?? []));
  return turns.flat().slice(0, MOST_FLOWS).sort((a, b) => a - b);
}

/** How each flow that is drawn looks. */
export function flowLooks(checked: Valid): FlowLook[] {
  const { flows } = checked.scenario;
  const drawn = drawnOf(checked);
  const lines = linesOf(drawn.map((flow) => flows[flow]?.cc ?? ""));
  return drawn.map((flow, at) => {
    const { name = "", cc = "" } = flows[flow] ?? {};
    const says = name.toLowerCase().includes(cc);
    return { flow, name, label: says ? name : `${name}, ${styleOf(cc).label}`, ...(lines[at] as Line) };
  });
}

/** The colour of a flow where it has no line. */
export function dotOf(checked: Valid, flow: number): string {
  const look = flowLooks(checked).find((one) => one.flow === flow);
  return styled(look?.colour ?? styleOf(checked.scenario.flows[flow]?.cc ?? "").colour);
}

/** The times of all samples, the same for all seeds. */
function timesOf(output: Output): number[] {
  const table = output.tables["links"] ?? {};
  return (rowsBy(table, "link").get(0) ?? []).map((row) => table["t"]?.[row] ?? NaN);
}

/** The values of a column of each flow at the times of all samples; null where there is none. */
function sampled(t: number[], table: Table, column: string, count: number, scale: number): Lines {
  const at = new Map(t.map((time, index) => [time, index]));
  const rows = rowsBy(table, "flow");
  const lines = Array.from({ length: count }, (_, flow) => {
    const values: (number | null)[] = new Array<number | null>(t.length).fill(null);
    for (const row of rows.get(flow) ?? []) {
      const value = (table[column]?.[row] ?? NaN) * scale;
      values[at.get(table["t"]?.[row] ?? NaN) ?? 0] = Number.isFinite(value) ? value : null;
    }
    return values;
  });
  return [t, lines];
}

/** Mean and range over seeds, time by time. */
function over(seeds: (number | null)[][]): Pick<Curve, "values" | "low" | "high"> {
  const longest = seeds.reduce((a, b) => (b.length > a.length ? b : a), []);
  if (seeds.length === 1) return { values: longest };
  const columns = longest.map((_, at) => seeds.map((line) => line[at] ?? null).filter((value) => value !== null));
  const each = (f: (values: number[]) => number): (number | null)[] =>
    columns.map((values) => (values.length ? f(values) : null));
  return {
    values: each((values) => values.reduce((a, b) => a + b, 0) / values.length),
    low: each((values) => Math.min(...values)),
    high: each((values) => Math.max(...values)),
  };
}

type Lines = [number[], (number | null)[][]];

function flowPanel(
  looks: FlowLook[],
  outputs: Output[],
  id: string,
  title: string,
  unit: string,
  of: (output: Output) => Lines,
): Panel {
  const found = outputs.map(of);
  const [longest] = found.map(([t]) => t).sort((a, b) => b.length - a.length);
  const curves = looks.map((look) => ({ ...look, name: look.label, ...over(found.map(([, lines]) => lines[look.flow] ?? [])) }));
  return { id, title, unit, t: longest ?? [], curves };
}

const numbers = (values: number[], scale: number): (number | null)[] =>
  values.map((value) => (Number.isNaN(value) ? null : value * scale));

/** All panels of the runs of a scenario; `inner` is a variable of algorithms to show too. */
export function panelsOf(checked: Valid, outputs: Output[], inner: string): Panel[] {
  const { scenario } = checked;
  const looks = flowLooks(checked);
  const count = Math.max(...looks.map(({ flow }) => flow)) + 1;
  const series = (column: string, scale: number) => (output: Output) =>
    sampled(timesOf(output), output.tables["series"] ?? {}, column, count, scale);
  const throughput = lookOf("throughput");
  const rates = (output: Output): Lines => {
    const { t, rates } = throughputs(output, scenario);
    return [t, rates.map((line) => numbers(line, throughput.scale))];
  };
  const panels = [
    flowPanel(looks, outputs, "windows", "Congestion window", "packets", series("cwnd", 1)),
    flowPanel(looks, outputs, "throughputs", throughput.title, throughput.unit, rates),
  ];
  const [first] = outputs;
  const bands = first ? states(first, looks, scenario) : [];
  if (bands.length) panels.push({ id: "states", title: "BBR's state", unit: outputs.length > 1 ? `seed ${first?.seed}` : "", t: panels[0]?.t ?? [], curves: [], bands });
  panels.push(roundTripPanel(looks, outputs, checked, series("srtt", 1e3)));
  scenario.links.forEach((link, number) => panels.push(queuePanel(outputs, number, link.name, scenario.links.length)));
  if (competing(scenario).length > 1) panels.push(jainPanel(outputs, checked));
  if (inner) panels.push(flowPanel(looks, outputs, "internals", inner, "", (output) => internals(output, inner, count)));
  const warmup = (scenario.warmup_ns ?? 0) / 1e9;
  return [...panels.map((panel) => (warmup ? { ...panel, warmup } : panel)), ...completionPanel(looks, outputs, scenario)];
}

/** What share of the transfers of all seeds is complete within a time; no panel without transfers. */
function completionPanel(looks: FlowLook[], outputs: Output[], scenario: Scenario): Panel[] {
  const runs = outputs.map((output) => transfersOf(output, scenario));
  const found = looks.map((look) => ({ look, transfers: runs.flatMap((run) => run.get(look.flow) ?? []) }));
  const some = found.filter(({ transfers }) => transfers.length);
  const all = some.flatMap(({ transfers }) => transfers).filter(({ time }) => time > 0);
  if (!all.length) return [];
  const [low, high] = all.reduce(([least, most], { isComplete, time }) => [isComplete ? Math.min(least, time) : least, Math.max(most, time)], [Infinity, 0]);
  const begin = Math.min(low, high) / 1.2; // none may be complete
  const durations: [number, number] = [begin, high * 1.2];
  const t = Array.from({ length: POINTS }, (_, at) => begin * ((high * 1.2) / begin) ** (at / (POINTS - 1)));
  const curves = some.map(({ look, transfers }) => {
    const left = survival(transfers);
    let next = 0;
    const values = t.map((time) => {
      while (next < left.length && (left[next]?.[0] ?? 0) <= time) next += 1;
      return 100 * (1 - (left[next - 1]?.[1] ?? 1));
    });
    return { ...look, name: look.label, values };
  });
  return [{ id: "completion-times", title: "Completion times", unit: "% of transfers", t, curves, most: 100, durations }];
}

/** Round-trip times; those of a multipath flow are its subflows'. */
function roundTripPanel(looks: FlowLook[], outputs: Output[], { scenario }: Valid, of: (output: Output) => Lines): Panel {
  const panel = flowPanel(looks, outputs, "round-trips", "Round-trip time", "ms", of);
  let first = 0;
  const subflows = scenario.flows.map((flow) => {
    const paths = flow.additional_subflows?.length ? pathsOf(flow) : [];
    return paths.map(({ path }) => ({ path: path.join(", "), row: first++ }));
  });
  if (!first) return panel;
  const found = outputs.map((output) => sampled(timesOf(output), output.tables["subflow_series"] ?? {}, "srtt", first, 1e3)[1]);
  const curves = panel.curves.flatMap((curve) => {
    const parts = subflows[curve.flow] ?? [];
    if (!parts.length) return [curve];
    return parts.map(({ path, row }, at) => ({ ...curve, name: `${looks.find(({ flow }) => flow === curve.flow)?.name} over ${path}`, dash: DASHES[at] ?? curve.dash, ...over(found.map((lines) => lines[row] ?? [])) }));
  });
  return { ...panel, curves, isKeyed: true };
}

function queuePanel(outputs: Output[], number: number, name: string, count: number): Panel {
  const found = outputs.map((output): Lines => {
    const table = output.tables["links"] ?? {};
    const rows = rowsBy(table, "link").get(number) ?? [];
    const column = (of: string, scale: number): number[] => rows.map((row) => (table[of]?.[row] ?? NaN) * scale);
    return [column("t", 1), [column("queue_bytes", 1e-3)]];
  });
  const title = count > 1 ? `Queue of ${name}` : "Queue";
  const curve = { name: title, flow: -1, colour: "faint", width: 1.2, dash: [], filled: true };
  const values = over(found.map(([, lines]) => lines[0] ?? []));
  return { id: `queue-${number}`, title, unit: "kB", t: found[0]?.[0] ?? [], curves: [{ ...curve, ...values }] };
}

function jainPanel(outputs: Output[], { scenario }: Valid): Panel {
  const found = outputs.map((output) => jainOverTime(output, scenario));
  const { title } = lookOf("jain");
  const curve = { name: title, flow: -1, colour: "ink", width: 1.2, dash: [] };
  const t = found.map((one) => one.t).sort((a, b) => b.length - a.length)[0] ?? [];
  const isOfAll = competing(scenario).length === scenario.flows.length;
  return { id: "jain", title, unit: isOfAll ? "" : "without flows of transfers", t, curves: [{ ...curve, ...over(found.map(({ index }) => numbers(index, 1))) }], most: 1 };
}

/** The rows of an internal variable, as a table of its own. */
function only(output: Output, name: string): Table {
  const table = output.tables["internals"] ?? {};
  const key = output.internals.indexOf(name);
  const rows = [...(table["name"] ?? [])].flatMap((value, row) => (value === key ? [row] : []));
  const column = (of: string): Float64Array => Float64Array.from(rows, (row) => table[of]?.[row] ?? NaN);
  return { flow: column("flow"), t: column("t"), value: column("value") };
}

function internals(output: Output, name: string, count: number): Lines {
  return sampled(timesOf(output), only(output, name), "value", count, 1);
}

/** The states of BBR's flows, as spans. */
function states(output: Output, looks: FlowLook[], { flows }: Scenario): { name: string; spans: Span[] }[] {
  const table = only(output, "state");
  return [...rowsBy(table, "flow")].flatMap(([flow, rows]) => {
    const look = looks.find((one) => one.flow === flow);
    if (!look || !isBbr(flows[flow]?.cc ?? "")) return [];
    const spans: Span[] = [];
    for (const row of rows) {
      const [t, state] = [table["t"]?.[row] ?? 0, table["value"]?.[row] ?? 0];
      const last = spans.at(-1);
      if (last) last.end = t;
      if (last?.state !== state) spans.push({ begin: t, end: t, state });
    }
    return spans.some(({ state }) => STATES.has(state)) ? [{ name: look.name, spans }] : [];
  });
}

/** The internal variables of the runs; without the state if it is BBR's alone, which has a panel. */
export function innerNames({ scenario }: Valid, outputs: Output[]): string[] {
  const [first] = outputs;
  const isOther = (flow: number): boolean => !isBbr(scenario.flows[flow]?.cc ?? "");
  return (first?.internals ?? []).filter((name) => name !== "state" || (first && only(first, name)["flow"]?.some(isOther)));
}
