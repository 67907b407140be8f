/** A panel: curves over time, with crosshair and zoom, drawn by uPlot. */

import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { moment, significant } from "./format";
import { Stroke } from "./legend";
import { timeText } from "../scenario/quantities";
import { STATES, styled, themed, variable } from "./looks";
import { logTicks } from "./ticks";
import { WARMUP, type Curve, type Panel } from "./panels";

const AXIS = 54;
const HEIGHT = 150;
/** The width of figures on paper. */
const PAPER = 660;
/** How many values the reading of a panel shows. */
const READ = 4;
/** The panel above the others. */
const FIRST = "windows";
/** The width of a label of the x axis, and the space around it. */
const LABEL = 80;

export interface View {
  /** The span of time that is shown. */
  span: [number, number];
  hidden: ReadonlySet<number>;
  dark: boolean;
}

interface Props {
  panel: Panel;
  view: View;
  last: boolean;
  zoom: (span: [number, number]) => void;
  /** Called with the time under the crosshair when it is clicked. */
  pick: (time: number) => void;
}

export const colourOf = (colour: string): string =>
  colour === "faint" || colour === "ink" ? variable(`--${colour}`) : themed(colour);

/** What the x axis shows. */
const spanOf = (panel: Panel, view: View): [number, number] => panel.durations ?? view.span;

/** A place on the x axis as text. */
const placeText = (panel: Panel, x: number): string => (panel.durations ? timeText(x) : moment(x));

const font = (): string => `11px ${getComputedStyle(document.body).fontFamily}`;

function axes(panel: Panel, last: boolean, left: Partial<uPlot.Axis>): uPlot.Axis[] {
  const common = {
    font: font(),
    stroke: () => variable("--soft"),
    grid: { stroke: () => variable("--line"), width: 1 },
    ticks: { show: false },
  };
  const below: Partial<uPlot.Axis> = panel.durations ? { filter: (_, splits) => splits, splits: (u) => logTicks(...(panel.durations ?? [1, 10]), u.width / LABEL) } : {};
  return [
    { ...common, size: last ? 30 : 8, values: (_, splits) => splits.map((at) => (last ? placeText(panel, at) : "")), space: 70, ...below },
    { ...common, size: AXIS, space: 28, ...left },
  ];
}

function curveSeries(curve: Curve): uPlot.Series[] {
  const stroke = () => colourOf(curve.colour);
  const edge: uPlot.Series = { show: true, stroke: "transparent", width: 0, points: { show: false } };
  const line: uPlot.Series = { label: curve.name, stroke, width: curve.width, dash: curve.dash, points: { show: false } };
  if (curve.filled) line.fill = () => `${colourOf(curve.colour)}40`;
  return curve.low ? [line, edge, edge] : [line];
}

interface Placed {
  curve: Curve;
  /** The index of its first series. */
  at: number;
}

function place(curves: Curve[]): Placed[] {
  let at = 1;
  return curves.map((curve) => {
    const placed = { curve, at };
    at += curve.low ? 3 : 1;
    return placed;
  });
}

/** Shades the time that does not count; the first panel says what it is. */
function shadeWarmup(u: uPlot, warmup: number, isFirst: boolean): void {
  const { ctx, bbox } = u;
  const [x0, x1] = [u.valToPos(0, "x", true), u.valToPos(warmup, "x", true)];
  const [left, right] = [Math.max(x0, bbox.left), Math.min(x1, bbox.left + bbox.width)];
  if (right <= left) return;
  ctx.save();
  ctx.fillStyle = `${variable("--faint")}33`;
  ctx.fillRect(left, bbox.top, right - left, bbox.height);
  ctx.fillStyle = variable("--soft");
  ctx.font = font().replace("11px", `${11 * devicePixelRatio}px`);
  [ctx.textAlign, ctx.textBaseline] = ["left", "top"];
  const margin = Math.max((right - left - ctx.measureText(WARMUP).width) / 2, 2 * devicePixelRatio);
  if (isFirst) ctx.fillText(WARMUP, left + margin, bbox.top + 3 * devicePixelRatio);
  ctx.restore();
}

function drawBands(u: uPlot, bands: NonNullable<Panel["bands"]>): void {
  const { ctx, bbox } = u;
  const height = bbox.height / bands.length;
  bands.forEach((band, row) => {
    for (const { begin, end, state } of band.spans) {
      const [x0, x1] = [u.valToPos(begin, "x", true), u.valToPos(end, "x", true)];
      const [left, right] = [Math.max(x0, bbox.left), Math.min(x1, bbox.left + bbox.width)];
      if (right <= left) continue;
      ctx.fillStyle = themed(STATES.get(state)?.colour ?? "");
      ctx.fillRect(left, bbox.top + (row + 0.12) * height, Math.max(right - left, 1), 0.76 * height);
    }
  });
}

/** The options of a chart; `latest` gives its present properties, which change without a new chart. */
function options(latest: () => Props, placed: Placed[], width: number, read: (u: uPlot) => void): uPlot.Options {
  const { panel, last } = latest();
  const { bands } = panel;
  const rows: Partial<uPlot.Axis> = bands
    ? {
        splits: () => bands.map((_, row) => row + 0.5),
        values: () => bands.map(({ name }) => (name.length > 8 ? `${name.slice(0, 7)}…` : name)),
        grid: { show: false },
      }
    : { values: (_, splits) => splits.map(significant) };
  const range: uPlot.Scale.Range = bands
    ? [0, bands.length]
    : (_, __, high) => [0, latest().panel.most ?? (high > 0 ? high * 1.05 : 1)];
  const all = placed.flatMap(({ curve }) => curveSeries(curve));
  return {
    width,
    height: (bands ? 22 + 18 * bands.length : HEIGHT) + (last ? 22 : 0),
    cursor: { ...(panel.durations ? {} : { sync: { key: "lab" } }), y: false, points: { size: 6 }, drag: { x: !panel.durations, y: false, setScale: false } },
    legend: { show: false },
    scales: { x: { time: false, distr: panel.durations ? 3 : 1, range: () => spanOf(latest().panel, latest().view) }, y: { range, ...(bands ? { dir: -1 as const } : {}) } },
    axes: axes(panel, last, rows),
    series: [{}, ...(bands ? [{ points: { show: false } }] : all)],
    bands: placed.flatMap(({ curve, at }) =>
      curve.low ? [{ series: [at + 2, at + 1] as [number, number], fill: () => `${colourOf(curve.colour)}38` }] : [],
    ),
    padding: [6, 18, 0, 0],
    hooks: {
      setCursor: [read],
      drawClear: [(u) => shadeWarmup(u, latest().panel.warmup ?? 0, panel.id === FIRST)],
      draw: bands ? [(u) => drawBands(u, latest().panel.bands ?? [])] : [],
      setSelect: [
        (u) => {
          if (u.select.width < 4) return;
          latest().zoom([u.posToVal(u.select.left, "x"), u.posToVal(u.select.left + u.select.width, "x")]);
          u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
        },
      ],
    },
  };
}

/** The values at the crosshair as text. */
function reading({ panel, view }: Props, placed: Placed[], u: uPlot): string {
  const left = u.cursor.left ?? -1;
  if (left < 0) return "";
  if (panel.bands) {
    const time = u.posToVal(left, "x");
    const stateOf = (spans: { begin: number; end: number; state: number }[]): string =>
      STATES.get(spans.find(({ begin, end }) => begin <= time && time < end)?.state ?? -1)?.name ?? "–";
    return `${moment(time)}: ${panel.bands.slice(0, READ).map(({ name, spans }) => `${name} ${stateOf(spans)}`).join(", ")}`;
  }
  const at = u.cursor.idx;
  if (at === null || at === undefined) return "";
  const shown = placed.filter(({ curve }) => !view.hidden.has(curve.flow)).slice(0, READ);
  const texts = shown.map(({ curve }) => {
    const value = significant(curve.values[at]);
    return curve.flow < 0 ? value : `${curve.name.split(",")[0] ?? ""} ${value}`;
  });
  return `${placeText(panel, u.data[0][at] ?? 0)}: ${texts.join(", ")}`;
}

/** Arrow keys move the crosshair, of all panels; Enter picks its time. */
function moveByKey(event: KeyboardEvent, u: uPlot, { panel, pick }: Props): void {
  const width = u.over.clientWidth;
  const left = u.cursor.left ?? -1;
  if (event.key === "Enter" && left >= 0 && !panel.durations) return pick(u.posToVal(left, "x"));
  const step = width * (event.shiftKey ? 0.1 : 0.01);
  const to = { ArrowLeft: left < 0 ? width : left - step, ArrowRight: left < 0 ? 0 : left + step, Home: 0, End: width }[event.key];
  if (to === undefined) return;
  event.preventDefault();
  const at = Math.min(Math.max(to, 0), width);
  // uPlot's third argument, which its types leave out, moves the crosshairs of the other panels too.
  (u.setCursor as (at: { left: number; top: number }, fire: boolean, publish: boolean) => void)({ left: at, top: 1 }, true, true);
}

/** Keeps a chart as wide as its element, and on paper as wide as the paper; returns what ends that. */
function fit(made: uPlot, element: HTMLElement): () => void {
  const widen = (width: number): void => made.setSize({ width: Math.max(width, 100), height: made.height });
  const observer = new ResizeObserver(() => widen(element.clientWidth));
  observer.observe(element);
  const before = (): void => widen(element.closest(".sides") ? PAPER / 2 - 10 : PAPER);
  const after = (): void => widen(element.clientWidth);
  addEventListener("beforeprint", before);
  addEventListener("afterprint", after);
  return () => {
    observer.disconnect();
    removeEventListener("beforeprint", before);
    removeEventListener("afterprint", after);
  };
}

/** Draws a chart into an element; `tell` gets the values at the crosshair as text. */
function draw(element: HTMLElement, latest: () => Props, tell: (said: string) => void): uPlot {
  const read = (u: uPlot): void => {
    const said = reading(latest(), place(latest().panel.curves), u);
    tell(said);
    element.ariaValueText = said || "no place";
    element.ariaValueNow = String(Number(u.posToVal(Math.max(u.cursor.left ?? 0, 0), "x").toFixed(6)));
  };
  const { panel } = latest();
  const made = new uPlot(options(latest, place(panel.curves), Math.max(element.clientWidth, 100), read), dataOf(panel), element);
  made.over.addEventListener("click", () => {
    const left = made.cursor.left ?? -1;
    if (left >= 0 && !panel.durations) latest().pick(made.posToVal(left, "x"));
  });
  made.over.addEventListener("dblclick", () => panel.durations || latest().zoom([0, Infinity]));
  return made;
}

/** Shows the data of a panel, as far as they are in view. */
function update(made: uPlot, panel: Panel, view: View): void {
  made.setData(dataOf(panel), false);
  const [min, max] = spanOf(panel, view);
  made.setScale("x", { min, max });
  for (const { curve, at } of place(panel.curves)) {
    const show = !view.hidden.has(curve.flow);
    for (let i = at; i < at + (curve.low ? 3 : 1); i += 1) made.setSeries(i, { show });
  }
  made.redraw();
}

export function Chart(props: Props) {
  const host = useRef<HTMLDivElement>(null);
  const text = useRef<HTMLSpanElement>(null);
  const chart = useRef<uPlot | null>(null);
  const latest = useRef(props);
  latest.current = props;
  const { panel, view, last } = props;
  const shape = `${panel.curves.map(({ name, low, colour, dash }) => `${name}${low ? "+" : ""}${colour} ${dash.join()}`).join()}|${panel.bands?.map(({ name }) => name).join() ?? ""}|${last}|${view.dark}|${panel.durations?.join() ?? ""}`;

  useEffect(() => {
    const element = host.current;
    if (!element) return undefined;
    const made = draw(element, () => latest.current, (said) => {
      if (text.current) text.current.textContent = said;
    });
    const unfit = fit(made, element);
    chart.current = made;
    return () => {
      unfit();
      made.destroy();
      chart.current = null;
    };
  }, [shape]);

  useEffect(() => {
    if (chart.current) update(chart.current, panel, view);
  }, [panel, view.span[0], view.span[1], view.hidden, shape]);

  return (
    <div class="panel" data-panel={panel.id}>
      <div class="head">
        <h3>{panel.title}</h3>
        {panel.unit && <span class="soft">({panel.unit})</span>}
        {panel.bands && <States bands={panel.bands} />}
        {panel.isKeyed && <Key curves={panel.curves.filter(({ flow }) => !view.hidden.has(flow))} />}
        <span class="reading" ref={text} />
      </div>
      <div
        ref={host}
        tabIndex={0}
        role="slider"
        aria-label={`${panel.title}: ${panel.durations ? "completion time" : "moment"}`}
        aria-valuemin={spanOf(panel, view)[0]}
        aria-valuemax={spanOf(panel, view)[1]}
        onKeyDown={(event) => chart.current && moveByKey(event, chart.current, props)}
      />
    </div>
  );
}

function Key({ curves }: { curves: Curve[] }) {
  return (
    <span class="states">
      {curves.map(({ name, colour, dash }) => (
        <span key={name}>
          <Stroke colour={colour} dash={dash} /> {name}
        </span>
      ))}
    </span>
  );
}

function States({ bands }: { bands: NonNullable<Panel["bands"]> }) {
  const seen = new Set(bands.flatMap(({ spans }) => spans.map(({ state }) => state)));
  const states = [...STATES].filter(([number]) => seen.has(number));
  return (
    <span class="states">
      {states.map(([number, { name, colour }]) => (
        <span key={number}>
          <i style={{ background: styled(colour) }} />
          {name}
        </span>
      ))}
    </span>
  );
}

function dataOf(panel: Panel): uPlot.AlignedData {
  if (panel.bands) return [panel.t, panel.t.map(() => null)];
  return [panel.t, ...panel.curves.flatMap(({ values, low, high }) => (low && high ? [values, low, high] : [values]))];
}
