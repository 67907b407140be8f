/** Windows and queue around the moment that the animation shows. */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Hops, Valid } from "../engine/protocol";
import { variable } from "../results/looks";
import { rowsBy } from "../results/rates";
import { significant } from "../results/format";
import { flowLooks } from "../results/panels";

interface Props {
  checked: Valid;
  hops: Hops | null;
  time: number;
  /** How much time it shows, s. */
  span: number;
  seek: (time: number) => void;
  dark: boolean;
  colours: string[];
}

const HEIGHT = 96;
const LEFT = 54;

interface Line {
  rows: number[];
  t: Float64Array | undefined;
  values: Float64Array | undefined;
  colour: string;
}

interface Shown {
  width: number;
  begin: number;
  span: number;
}

export function Strip({ checked, hops, time, span, seek, dark, colours }: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const begin = time - span / 2;
  const [width, setWidth] = useState(0);
  const drawn = useMemo(() => flowLooks(checked).map(({ flow }) => flow), [checked]);

  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => setWidth(entry?.contentRect.width ?? 0));
    if (canvas.current) observer.observe(canvas.current);
    return () => observer.disconnect();
  }, []);

  useEffect(() => {
    const element = canvas.current;
    const ctx = element?.getContext("2d");
    if (!element || !ctx) return;
    const ratio = window.devicePixelRatio || 1;
    [element.width, element.height] = [Math.round(width * ratio), Math.round(2 * HEIGHT * ratio)];
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    ctx.font = `11px ${getComputedStyle(document.body).fontFamily}`;
    if (hops) {
      const { series, links } = hops;
      const shown = { width, begin, span };
      row(ctx, 0, "cwnd", [...rowsBy(series, "flow")].filter(([flow]) => drawn.includes(flow)).map(([flow, rows]) => ({ rows, values: series["cwnd"], t: series["t"], colour: colours[flow] ?? "" })), shown);
      row(ctx, 1, "queue", [...rowsBy(links, "link")].map(([, rows]) => ({ rows, values: links["queue_packets"], t: links["t"], colour: variable("--faint") })), shown);
    }
    ctx.strokeStyle = variable("--ink");
    ctx.beginPath();
    ctx.moveTo((width + LEFT) / 2, 0);
    ctx.lineTo((width + LEFT) / 2, 2 * HEIGHT);
    ctx.stroke();
  }, [hops, time, span, dark, colours, width]);

  return (
    <canvas
      ref={canvas}
      class="strip"
      style={{ width: "100%", height: `${2 * HEIGHT}px` }}
      role="img"
      aria-label="Congestion windows and queue, packets, around this moment"
      onClick={(event) => {
        const x = (event.offsetX - LEFT) / (event.currentTarget.clientWidth - LEFT);
        if (x > 0) seek(begin + x * span);
      }}
    />
  );
}

/** Draws the lines of a panel; the panels are `width` wide and show `span` from `begin` on. */
function row(ctx: CanvasRenderingContext2D, number: number, title: string, lines: Line[], { width, begin, span }: Shown): void {
  const [top, height] = [number * HEIGHT + 8, HEIGHT - 16];
  const visible = lines.map((line) => ({ ...line, rows: window_(line, begin, begin + span) }));
  const finite = visible.flatMap(({ rows, values }) => rows.map((at) => values?.[at] ?? 0).filter(Number.isFinite));
  const most = finite.reduce((a, b) => Math.max(a, b), 1) * 1.1;
  ctx.fillStyle = variable("--soft");
  ctx.textAlign = "right";
  ctx.textBaseline = "middle";
  ctx.fillText(significant(most / 1.1), LEFT - 6, top + 0.09 * height);
  ctx.fillText("0", LEFT - 6, top + height);
  ctx.fillText(title, LEFT - 6, top + height / 2);
  ctx.strokeStyle = variable("--line");
  ctx.strokeRect(LEFT, top, width - LEFT - 1, height);
  for (const { rows, t, values, colour } of visible) {
    ctx.strokeStyle = colour;
    ctx.lineWidth = 1.6;
    ctx.beginPath();
    rows.forEach((at, index) => {
      const x = LEFT + (((t?.[at] ?? 0) - begin) / span) * (width - LEFT);
      const y = top + height * (1 - (values?.[at] ?? 0) / most);
      if (index) ctx.lineTo(Math.max(x, LEFT), y);
      else ctx.moveTo(Math.max(x, LEFT), y);
    });
    ctx.stroke();
    ctx.lineWidth = 1;
  }
}

/** The rows of a line within a span of time, and one on each side. */
function window_({ rows, t }: { rows: number[]; t: Float64Array | undefined }, begin: number, end: number): number[] {
  const at = (row: number): number => t?.[row] ?? 0;
  const search = (time: number): number => {
    let [low, high] = [0, rows.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (at(rows[middle] ?? 0) < time) low = middle + 1;
      else high = middle;
    }
    return low;
  };
  return rows.slice(Math.max(search(begin) - 1, 0), search(end) + 1);
}
