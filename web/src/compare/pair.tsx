/** Two scenarios side by side: what differs, the figures on the same axes, the numbers. */

import { useMemo } from "preact/hooks";
import { Figure } from "../results/figure";
import { Legend } from "../results/legend";
import { panelsOf, type Panel } from "../results/panels";
import { zoomOf, ZoomTools } from "../results/zoom";
import { useFocusKept } from "../focus";
import type { Runs } from "../runs";
import type { View } from "../share/link";
import { fileName } from "../share/share";
import { isStale, type Lab } from "../state";
import { Status } from "../status";
import { differences } from "./differences";
import { Numbers } from "./numbers";

/** More differences than this are counted. */
const MOST = 20;
const ORDER = ["windows", "throughputs", "states", "round-trips", "queue", "jain", "completion-times"];

export interface Shown {
  dark: boolean;
  view: View;
  show: (part: Partial<View>) => void;
}

export function Pair({ lab, ...shown }: Shown & { lab: Lab }) {
  const { source, arrange, beside, runs } = lab;
  const section = useFocusKept<HTMLElement>();
  const keep = (): void => arrange({ ...source, beside: source.toml });
  if (!source.beside) {
    return (
      <section ref={section} tabIndex={-1} aria-label="Two scenarios">
        <div class="row" key="first">
          <button type="button" class="main" onClick={keep}>
            Keep this scenario as A
          </button>
          <span class="soft">Then change it, or choose another one: that is B, and stands beside A.</span>
        </div>
      </section>
    );
  }
  return (
    <section ref={section} tabIndex={-1} class="pair" aria-label="Two scenarios">
      <div class="row" key="both">
        <button type="button" onClick={() => arrange({ ...source, toml: source.beside, beside: source.toml })}>Swap A and B</button>
        <button type="button" onClick={keep}>Keep B as A</button>
        <button type="button" onClick={() => arrange({ ...source, beside: "" })}>Drop A</button>
      </div>
      {beside.valid && lab.valid && <Differences found={differences(beside.valid, lab.valid)} />}
      {!beside.runs || beside.share !== null || beside.waits || beside.problems.length || beside.failure ? (
        <div class="row">
          <b>A</b> <Status outcome={beside} trusted={lab.trusted} />
        </div>
      ) : null}
      {beside.runs && runs && <Sides a={beside.runs} b={runs} {...shown} stale={isStale(lab) || isStale(beside)} />}
    </section>
  );
}

function Differences({ found }: { found: ReturnType<typeof differences> }) {
  if (!found.length) return <p class="soft">A and B are the same so far. Change the scenario: that is B.</p>;
  return (
    <div class="tables scroll" tabIndex={0} role="region" aria-label="What differs">
      <table class="differences">
        <thead>
          <tr>
            <th scope="col">What differs</th>
            <th scope="col">A</th>
            <th scope="col">B</th>
          </tr>
        </thead>
        <tbody>
          {found.slice(0, MOST).map(({ key, a, b }) => (
            <tr key={key}>
              <th scope="row">
                <code>{key}</code>
              </th>
              <td>{a}</td>
              <td>{b}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {found.length > MOST && <p class="soft">and {found.length - MOST} more</p>}
    </div>
  );
}

/** The largest value that a panel draws. */
const largest = ({ curves }: Panel): number =>
  curves.reduce((most, { values, high }) => (high ?? values).reduce<number>((all, value) => Math.max(all, value ?? 0), most), 0);

/** The panels of both, by rows; those of a row have the same axes. */
function rowsOf(sides: Panel[][]): (Panel | undefined)[][] {
  const place = (id: string): number => ORDER.findIndex((one) => id.startsWith(one));
  const ids = [...new Set(sides.flat().map(({ id }) => id))].sort((a, b) => place(a) - place(b));
  return ids.map((id) => {
    const row = sides.map((panels) => panels.find((panel) => panel.id === id));
    const most = Math.max(...row.map((panel) => panel?.most ?? (panel ? 1.05 * largest(panel) : 0))) || 1;
    const spans = row.flatMap((panel) => panel?.durations ?? []);
    const durations = spans.length ? { durations: [Math.min(...spans), Math.max(...spans)] as [number, number] } : {};
    return row.map((panel, at) => panel && { ...panel, title: `${"AB"[at]}: ${panel.title}`, most, ...durations });
  });
}

function Sides({ a, b, dark, stale, view, show }: Shown & { a: Runs; b: Runs; stale: boolean }) {
  const sides = [a, b];
  const { hidden } = view;
  const end = Math.max(...sides.map(({ checked }) => checked.scenario.duration_ns / 1e9));
  const zoom = zoomOf(end, view.span, (span) => show({ span }));
  const rows = useMemo(() => rowsOf(sides.map(({ checked, outputs }) => panelsOf(checked, outputs, ""))), [a, b]);
  const lastOverTime = rows.findLastIndex((row) => row.some((panel) => panel && !panel.durations));
  const names = sides.map(({ checked }, at) => `${fileName(checked.experiment.title)}-${"ab"[at]}`);
  return (
    <div class={stale ? "results stale" : "results"}>
      <div class="tools" role="group" aria-label="What is shown">
        <ZoomTools {...zoom} />
      </div>
      <div class="sides">
        {sides.map(({ checked }, at) => (
          <div key={at}>
            <h2>
              {"AB"[at]}: {checked.experiment.title || "without a title"}
            </h2>
            <Legend checked={checked} hidden={hidden} toggle={(hidden) => show({ hidden })} />
          </div>
        ))}
        {rows.flatMap((row, number) =>
          row.map((panel, at) =>
            panel ? (
              <Figure key={`${at}${panel.id}`} name={names[at] ?? ""} panel={panel} view={{ span: zoom.span, hidden, dark }} last={number >= lastOverTime} zoom={zoom.set} pick={() => undefined} />
            ) : (
              <div key={`${at}-${number}`} />
            ),
          ),
        )}
      </div>
      <Numbers a={a} b={b} />
    </div>
  );
}
