/** The results: legend, tools, panels, tables. */

import { useMemo } from "preact/hooks";
import type { Output, Valid } from "../engine/protocol";
import { beginning, type View } from "../share/link";
import { fileName } from "../share/share";
import { Figure } from "./figure";
import { Legend } from "./legend";
import { innerNames, panelsOf } from "./panels";
import { Tables } from "./table";
import { zoomOf, ZoomTools } from "./zoom";

interface Props {
  checked: Valid;
  outputs: Output[];
  dark: boolean;
  /** Whether newer results are being made. */
  stale: boolean;
  view: View;
  /** Changes what is shown. */
  show: (part: Partial<View>) => void;
}

export function Results({ checked, outputs, dark, stale, view, show }: Props) {
  const end = checked.scenario.duration_ns / 1e9;
  const zoom = zoomOf(end, view.span, (span) => show({ span }));
  const chosen = useMemo(() => outputs.filter(({ seed }) => seed === view.seed), [outputs, view.seed]);
  const shown = chosen.length ? chosen : outputs;
  const names = useMemo(() => innerNames(checked, outputs), [checked, outputs]);
  const variable = names.includes(view.variable) ? view.variable : "";
  const panels = useMemo(() => panelsOf(checked, shown, variable), [checked, shown, variable]);
  const { hidden } = view;
  const lastOverTime = panels.findLastIndex(({ durations }) => !durations);
  return (
    <section class={stale ? "results stale" : "results"} aria-label="Results">
      <div class="bar">
        <Legend checked={checked} hidden={hidden} toggle={(hidden) => show({ hidden })} />
        <div class="tools" role="group" aria-label="What is shown">
          {outputs.length > 1 && (
            <select aria-label="Seeds" value={chosen[0]?.seed ?? ""} onChange={({ currentTarget: { value } }) => show({ seed: value ? Number(value) : null })}>
              <option value="">all seeds: mean and range</option>
              {outputs.map((output) => (
                <option key={output.seed} value={output.seed}>
                  seed {output.seed}
                </option>
              ))}
            </select>
          )}
          {names.length > 0 && (
            <select aria-label="Variable of the algorithms" value={variable} onChange={(event) => show({ variable: event.currentTarget.value })}>
              <option value="">internals …</option>
              {names.map((name) => (
                <option key={name}>{name}</option>
              ))}
            </select>
          )}
          <ZoomTools {...zoom} />
        </div>
      </div>
      {panels.map((panel, at) => (
        <Figure key={panel.id} name={fileName(checked.experiment.title)} panel={panel} view={{ span: zoom.span, hidden, dark }} last={at >= lastOverTime} zoom={zoom.set} pick={(at) => show({ at, paused: beginning().paused })} />
      ))}
      <Tables checked={checked} outputs={shown} />
    </section>
  );
}
