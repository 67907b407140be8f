/** Figures as SVG and PNG, samples as CSV. */

import type { Output, Valid } from "../engine/protocol";
import { timeText } from "../scenario/quantities";
import { moment, significant } from "./format";
import type { View } from "./chart";
import { printed, STATES } from "./looks";
import { WARMUP, type Curve, type Panel } from "./panels";
import { logTicks, ticks } from "./ticks";

const WIDTH = 720;
const HEIGHT = 200;
/** Half of the last label of a time axis has room here. */
const RIGHT = 24;
const ROW = 16;

const escape = (text: string): string =>
  text.replace(/[&<>"]/g, (char) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[char] ?? "");

/** The points of a line in pieces, without gaps. */
function pieces(t: number[], values: (number | null)[], x: (t: number) => number, y: (v: number) => number, [begin, end]: [number, number]): string[] {
  const found: string[][] = [[]];
  t.forEach((time, at) => {
    const value = values[at] ?? null;
    if (value === null) {
      if (found.at(-1)?.length) found.push([]);
    } else if (time >= begin && time <= end) {
      found.at(-1)?.push(`${x(time).toFixed(1)} ${y(value).toFixed(1)}`);
    }
  });
  return found.filter((piece) => piece.length > 1).map((piece) => `M${piece.join("L")}`);
}

function range(t: number[], curve: Curve, x: (t: number) => number, y: (v: number) => number, [begin, end]: [number, number]): string {
  const there = t.flatMap((time, at) => {
    const [low, high] = [curve.low?.[at] ?? null, curve.high?.[at] ?? null];
    return low !== null && high !== null && time >= begin && time <= end ? [{ time, low, high }] : [];
  });
  const up = there.map(({ time, high }) => `${x(time).toFixed(1)} ${y(high).toFixed(1)}`);
  const down = there.reverse().map(({ time, low }) => `${x(time).toFixed(1)} ${y(low).toFixed(1)}`);
  return there.length > 1 ? `<path d="M${[...up, ...down].join("L")}Z" fill="${printed(curve.colour)}" fill-opacity="0.2"/>` : "";
}

/** How wide a text is, about. */
const widthOf = (text: string): number => 7 * text.length;

/** The key of a panel behind its title, in as many rows as it needs. */
function keyOf(panel: Panel, shown: Curve[], from: number): { drawn: string[]; rows: number } {
  const seen = new Set(panel.bands?.flatMap(({ spans }) => spans.map(({ state }) => state)));
  const states = [...STATES].filter(([number]) => seen.has(number)).map(([, state]) => ({ ...state, width: 10, dash: [] as number[] }));
  const lines = shown.filter(({ flow }) => flow >= 0).map((curve) => ({ ...curve, width: 2 }));
  let [x, row] = [from, 0];
  const drawn = [...states, ...lines].map(({ name, colour, width, dash }) => {
    if (x + 20 + widthOf(name) > WIDTH && x > 12) [x, row] = [12, row + 1];
    const [at, y] = [x, row * ROW];
    x += 34 + widthOf(name);
    return `<path d="M${at.toFixed(1)} ${12 + y}h16" stroke="${printed(colour)}" stroke-width="${width}"${dashed(dash)}/><text x="${(at + 20).toFixed(1)}" y="${16 + y}">${escape(name)}</text>`;
  });
  return { drawn, rows: row + 1 };
}

const dashed = (dash: number[]): string => (dash.length ? ` stroke-dasharray="${dash.join(" ")}"` : "");

/** A panel as an SVG drawing, in the colours of a light page. */
export function svg(panel: Panel, view: View): string {
  const shown = panel.curves.filter(({ flow }) => !view.hidden.has(flow));
  const span = panel.durations ?? view.span;
  const [begin, end] = span;
  const largest = ({ values, high }: Curve): number =>
    panel.t.reduce((most, time, at) => (time >= begin && time <= end ? Math.max(most, (high ?? values)[at] ?? 0) : most), 0);
  const most = panel.most ?? (Math.max(...shown.map(largest), 0) * 1.05 || 1);
  const title = panel.title + (panel.unit && ` (${panel.unit})`);
  const left = Math.max(64, ...(panel.bands ?? []).map(({ name }) => Math.min(widthOf(name) + 18, WIDTH / 3)));
  const { drawn, rows } = keyOf(panel, shown, left + 16 + 7.5 * title.length);
  const top = 18 + ROW * rows;
  const share = (t: number): number => (panel.durations ? Math.log(t / begin) / Math.log(end / begin) : (t - begin) / (end - begin));
  const x = (t: number): number => left + share(t) * (WIDTH - left - RIGHT);
  const marks = panel.durations ? logTicks(begin, end, 12) : ticks(begin, end, 8);
  const label = panel.durations ? timeText : moment;
  const y = (value: number): number => top + HEIGHT * (1 - value / most);
  const parts = [
    `<text x="${left}" y="16" font-weight="600">${escape(title)}</text>`,
    ...drawn,
    ...marks.map((t) => `<path d="M${x(t).toFixed(1)} ${top}v${HEIGHT}" stroke="#d5d9de"/><text x="${x(t).toFixed(1)}" y="${top + HEIGHT + 16}" text-anchor="middle">${label(t)}</text>`),
  ];
  const warm = Math.min(panel.warmup ?? 0, end);
  if (warm > begin) {
    const [from, to] = [x(Math.max(begin, 0)), x(warm)];
    parts.push(`<path d="M${from.toFixed(1)} ${top}H${to.toFixed(1)}v${HEIGHT}H${from.toFixed(1)}Z" fill="${printed("faint")}" fill-opacity="0.2"/>`);
    const margin = Math.max((to - from - widthOf(WARMUP)) / 2, 2);
    parts.push(`<text x="${(from + margin).toFixed(1)}" y="${top + 13}">${WARMUP}</text>`);
  }
  if (panel.bands) {
    const height = HEIGHT / panel.bands.length;
    panel.bands.forEach(({ name, spans }, row) => {
      parts.push(`<text x="${left - 6}" y="${(top + (row + 0.6) * height).toFixed(1)}" text-anchor="end">${escape(name)}</text>`);
      for (const span of spans) {
        const [from, to] = [Math.max(span.begin, begin), Math.min(span.end, end)];
        if (to > from) parts.push(`<path d="M${x(from).toFixed(1)} ${(top + (row + 0.1) * height).toFixed(1)}H${x(to).toFixed(1)}v${(height * 0.8).toFixed(1)}H${x(from).toFixed(1)}Z" fill="${printed(STATES.get(span.state)?.colour ?? "")}"/>`);
      }
    });
  } else {
    for (const value of ticks(0, most, 4)) {
      parts.push(`<path d="M${left} ${y(value).toFixed(1)}H${WIDTH - RIGHT}" stroke="#d5d9de"/><text x="${left - 6}" y="${(y(value) + 4).toFixed(1)}" text-anchor="end">${significant(value)}</text>`);
    }
    for (const curve of shown) {
      parts.push(range(panel.t, curve, x, y, span));
      for (const d of pieces(panel.t, curve.values, x, y, span)) {
        parts.push(`<path d="${d}" fill="none" stroke="${printed(curve.colour)}" stroke-width="${curve.width}"${dashed(curve.dash)}/>`);
      }
    }
  }
  const height = top + HEIGHT + 24;
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}" font-family="sans-serif" font-size="11" fill="#1b1f24">${parts.join("")}</svg>\n`;
}

/** So many lines of a CSV are one text: all of them may be longer than a text can be. */
const LINES = 10_000;

/** The samples of all flows as CSV, one row for each seed, time and flow. */
export function csv(checked: Valid, outputs: Output[]): Blob {
  const [first] = outputs;
  if (!first) return new Blob();
  const names = Object.keys(first.tables["series"] ?? {}).filter((name) => name !== "flow");
  const parts: string[] = [];
  let lines = [["seed", "flow", "cc", ...names].join(",")];
  const quoted = (text: string): string => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  for (const { seed, tables } of outputs) {
    const table = tables["series"] ?? {};
    table["flow"]?.forEach((number, row) => {
      const flow = checked.scenario.flows[number];
      const cells = names.map((name) => {
        const value = table[name]?.[row] ?? NaN;
        return Number.isNaN(value) ? "" : value === Infinity ? "inf" : String(value);
      });
      lines.push([seed, quoted(flow?.name ?? ""), quoted(flow?.cc ?? ""), ...cells].join(","));
      if (lines.length === LINES) {
        parts.push(`${lines.join("\n")}\n`);
        lines = [];
      }
    });
  }
  return new Blob([...parts, ...lines.map((line) => `${line}\n`)]);
}

/** How many pixels of a PNG a unit of the drawing takes. */
const SCALE = 2;

/** A drawing in pixels, on white. */
export async function png(drawing: string): Promise<Blob> {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(drawing)}`;
  await image.decode();
  return pixels(image, SCALE * image.width, SCALE * image.height, "#ffffff");
}

/** A picture as a PNG on a background. */
export function pixels(picture: CanvasImageSource, width: number, height: number, background: string): Promise<Blob> {
  const canvas = Object.assign(document.createElement("canvas"), { width, height });
  const ctx = canvas.getContext("2d");
  if (!ctx) throw new Error("the browser gives no canvas to draw on");
  ctx.fillStyle = background;
  ctx.fillRect(0, 0, width, height);
  ctx.drawImage(picture, 0, 0, width, height);
  return new Promise((done, fail) => canvas.toBlob((blob) => (blob ? done(blob) : fail(new Error("the picture is too large")))));
}

/** Offers a file. */
export function save(name: string, content: Blob | string, type = "text/plain"): void {
  const url = URL.createObjectURL(new Blob([content], { type }));
  const link = document.createElement("a");
  [link.href, link.download] = [url, name];
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
