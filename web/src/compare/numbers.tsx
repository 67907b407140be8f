/** The metrics of two scenarios beside each other, with their differences. */

import type { ComponentChildren } from "preact";
import { columnsOf, lookOf, type Column } from "../results/columns";
import { estimates, type Written } from "../results/format";
import { mean, summarise, type Estimate, type Summary } from "../results/metrics";
import { dotOf } from "../results/panels";
import { FlowName, FLOWS, flowsOf, groupsOf, LINKS, TRANSFERS, transfersIn, type Group } from "../results/table";
import type { Runs } from "../runs";

/** A metric of both: its values by seed. */
interface Line {
  title: string;
  unit: string;
  decimals: number;
  sides: Map<number, number>[];
}

interface Section {
  head: ComponentChildren;
  lines: Line[];
}

type Found = Map<number, Summary>;

/** A line for each metric that any of the summaries has; a summary has one row of them, or none. */
function linesOf<T>(columns: Column<T>[], founds: Found[], of: (summary: Summary, side: number) => T[]): Line[] {
  return columns.flatMap(({ key, title, unit, scale, decimals }) => {
    const sides = founds.map((found, side) => {
      const values = [...found].flatMap(([seed, summary]) => of(summary, side).map((one) => [seed, (one[key] as number) * scale] as const));
      return new Map(values.filter(([, value]) => !Number.isNaN(value)));
    });
    return sides.some(({ size }) => size) ? [{ title, unit, decimals, sides }] : [];
  });
}

function sectionsOf(sides: Runs[]): Section[] {
  const founds = sides.map(({ checked, outputs }): Found => new Map(outputs.map((output) => [output.seed, summarise(output, checked.scenario)])));
  const groups = sides.map(({ checked }) => groupsOf(checked));
  const flows = [...new Set(groups.flat().map(({ name }) => name))].map((name): Section => {
    const both = groups.map((side) => side.find((group) => group.name === name));
    const ccs = [...new Set(both.flatMap((group) => (group ? [group.cc] : [])))];
    const colours = [...new Set(both.flatMap((group, at) => (group ? [dotOf((sides[at] as Runs).checked, group.numbers[0] ?? 0)] : [])))];
    const inBoth = <T,>(of: (summary: Summary, group: Group) => T[]) => (summary: Summary, side: number): T[] => {
      const group = both[side];
      return group ? of(summary, group) : [];
    };
    return {
      head: ccs.length === 1 && colours.length === 1 ? <FlowName name={name} cc={ccs[0] ?? ""} colour={colours[0] ?? ""} /> : name,
      lines: [
        ...linesOf(FLOWS, founds, inBoth((summary, group) => [flowsOf(summary, group)])),
        ...linesOf(TRANSFERS, founds, inBoth(transfersIn)),
      ],
    };
  });
  const names = [...new Set(sides.flatMap(({ checked }) => checked.scenario.links.map(({ name }) => name)))];
  const links = names.map((name): Section => {
    const numbers = sides.map(({ checked }) => checked.scenario.links.findIndex((link) => link.name === name));
    return { head: name, lines: linesOf(LINKS, founds, (summary, side) => summary.links.filter((_, number) => number === numbers[side])) };
  });
  const all: Column<Summary>[] = [{ key: "together", ...lookOf("throughput") }, ...columnsOf<Summary>("jain")];
  return [...flows, { head: "All flows", lines: linesOf(all, founds, (summary) => [summary]) }, ...links].filter(({ lines }) => lines.length);
}

/** B less A, seed by seed. */
function difference([a, b]: Map<number, number>[]): Estimate {
  return mean([...(a ?? [])].flatMap(([seed, value]) => (b?.has(seed) ? [(b.get(seed) ?? NaN) - value] : [])));
}

function Cell({ estimate, write, sign }: { estimate: Estimate; write: Written; sign?: boolean }) {
  const { value, half } = write(estimate);
  const isSure = sign && estimate.half < Math.abs(estimate.value);
  const text = sign && /^[^−]*[1-9]/.test(value) ? `+${value}` : value;
  return (
    <td class="number">
      {isSure ? <b>{text}</b> : text}
      {half && <span class="soft small"> ±{half}</span>}
    </td>
  );
}

export function Numbers({ a, b }: { a: Runs; b: Runs }) {
  const severalSeeds = Math.min(a.outputs.length, b.outputs.length) > 1;
  return (
    <div class="tables">
      <div class="scroll" tabIndex={0} role="region" aria-label="Numbers of A and B">
        <table class="numbers">
          <thead>
            <tr>
              <th scope="col" />
              <th scope="col" class="number">A</th>
              <th scope="col" class="number">B</th>
              <th scope="col" class="number">B − A</th>
            </tr>
          </thead>
          {sectionsOf([a, b]).map(({ head, lines }, at) => (
            <tbody key={at}>
              <tr>
                <th scope="rowgroup" colSpan={4}>{head}</th>
              </tr>
              {lines.map(({ title, unit, decimals, sides }) => {
                const found = sides.map((values) => mean([...values.values()]));
                const more = difference(sides);
                const write = estimates([...found, more], decimals);
                return (
                  <tr key={title}>
                    <th scope="row">
                      {title} {unit && <span class="soft">({unit})</span>}
                    </th>
                    {found.map((estimate, side) => <Cell key={side} estimate={estimate} write={write} />)}
                    <Cell estimate={more} write={write} sign />
                  </tr>
                );
              })}
            </tbody>
          ))}
        </table>
      </div>
      {severalSeeds && <p class="soft small">Means over the seeds and 95 % intervals (Student’s t); those of B − A are of the differences seed by seed. Bold: the interval excludes 0.</p>}
    </div>
  );
}
