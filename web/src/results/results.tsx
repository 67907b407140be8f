/** The results: legend, tools, panels, tables. */

import { useMemo, useState } from "preact/hooks";
import type { Output, Valid } from "../engine/protocol";
import { fileName } from "../share/share";
import { Chart, colourOf, type View } from "./chart";
import { save, svg } from "./export";
import { flowLooks, innerNames, MOST_FLOWS, panelsOf } from "./panels";
import { Tables } from "./table";

interface Props {
  checked: Valid;
  outputs: Output[];
  dark: boolean;
  /** Whether newer results are being made. */
  stale: boolean;
  pick: (time: number) => void;
}

export function Results({ checked, outputs, dark, stale, pick }: Props) {
  const end = checked.scenario.duration_ns / 1e9;
  const [zoomed, setZoomed] = useState<[number, number] | null>(null);
  const [hidden, setHidden] = useState<ReadonlySet<number>>(new Set());
  const [inner, setInner] = useState("");
  const [seed, setSeed] = useState("all");
  const chosen = outputs.filter((output) => seed === "all" || String(output.seed) === seed);
  const shown = chosen.length ? chosen : outputs;
  const names = innerNames(outputs);
  const variable = names.includes(inner) ? inner : "";
  const panels = useMemo(() => panelsOf(checked, shown, variable), [checked, outputs, seed, variable]);
  const span: [number, number] = zoomed && zoomed[0] < end ? [zoomed[0], Math.min(zoomed[1], end)] : [0, end];
  const view: View = { span, hidden, dark };
  const looks = flowLooks(checked);

  const toggle = (flow: number): void => {
    const next = new Set(hidden);
    if (!next.delete(flow)) next.add(flow);
    setHidden(next);
  };
  const zoom = ([from, to]: [number, number]): void => {
    const [low, high] = [Math.max(from, 0), Math.min(to, end)];
    setZoomed(low <= 0 && high >= end ? null : [low, high]);
  };
  const scale = (by: number): void => {
    const [middle, half] = [(span[0] + span[1]) / 2, ((span[1] - span[0]) / 2) * by];
    zoom([middle - half, middle + half]);
  };
  const move = (by: number): void => {
    const width = span[1] - span[0];
    const from = Math.min(Math.max(span[0] + by * width, 0), end - width);
    zoom([from, from + width]);
  };

  return (
    <section class={stale ? "results stale" : "results"} aria-label="Results">
      <div class="bar">
        <div class="legend">
          {looks.map(({ label, colour, dash }, flow) => (
            <button type="button" key={flow} aria-pressed={!hidden.has(flow)} onClick={() => toggle(flow)}>
              <svg viewBox="0 0 24 8" width="24" height="8" aria-hidden="true">
                <path d="M0 4H24" style={{ stroke: colourOf(colour), strokeWidth: 2.5, strokeDasharray: dash.join(" ") }} />
              </svg>
              {label}
            </button>
          ))}
          {checked.scenario.flows.length > MOST_FLOWS && <span class="soft">and {checked.scenario.flows.length - MOST_FLOWS} more</span>}
        </div>
        <div class="tools" role="group" aria-label="What is shown">
          {outputs.length > 1 && (
            <select aria-label="Seeds" value={seed} onChange={(event) => setSeed(event.currentTarget.value)}>
              <option value="all">all seeds: mean and range</option>
              {outputs.map((output) => (
                <option key={output.seed} value={String(output.seed)}>
                  seed {output.seed}
                </option>
              ))}
            </select>
          )}
          {names.length > 0 && (
            <select aria-label="Variable of the algorithms" value={variable} onChange={(event) => setInner(event.currentTarget.value)}>
              <option value="">internals …</option>
              {names.map((name) => (
                <option key={name}>{name}</option>
              ))}
            </select>
          )}
          <button type="button" onClick={() => scale(2)} aria-label="Zoom out" title="Zoom out">−</button>
          <button type="button" onClick={() => scale(0.5)} aria-label="Zoom in" title="Zoom in; or drag over a panel">+</button>
          <button type="button" onClick={() => move(-0.5)} aria-label="Earlier" title="Earlier">◂</button>
          <button type="button" onClick={() => move(0.5)} aria-label="Later" title="Later">▸</button>
          <button type="button" onClick={() => setZoomed(null)} disabled={!zoomed}>All</button>
        </div>
      </div>
      {panels.map((panel, at) => (
        <div class="figure" key={panel.id}>
          <Chart panel={panel} view={view} last={at === panels.length - 1} zoom={zoom} pick={pick} />
          <button
            type="button"
            class="quiet save"
            title={`Save as SVG: ${panel.title}`}
            aria-label={`Save as SVG: ${panel.title}`}
            onClick={() => save(`${fileName(checked.experiment.title)}-${panel.id}.svg`, svg(panel, view), "image/svg+xml")}
          >
            SVG
          </button>
        </div>
      ))}
      <Tables checked={checked} outputs={shown} />
    </section>
  );
}
