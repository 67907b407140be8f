/** What flows and links achieved, as `dumbbell run` and `compare` print it. */

import { useMemo } from "preact/hooks";
import type { Output, Valid } from "../engine/protocol";
import { columnsOf, lookOf, type Column } from "./columns";
import { alike, estimates, type Written } from "./format";
import { styleOf } from "./looks";
import { dotOf } from "./panels";
import type { LinkSummary } from "./links";
import { averaged, competing, mean, rowOfFlows, summarise, type Estimate, type FlowRow, type Summary } from "./metrics";
import { transfersOf, type TransferSummary } from "./transfers";

export const FLOWS = columnsOf<FlowRow>("throughput", "queue_delay_mean", "queue_delay_p95", "rtt_mean", "retransmission_share", "loss_share", "timeouts", "took");

export const LINKS: Column<LinkSummary>[] = [
  ...columnsOf<LinkSummary>("utilisation", "queue_mean", "dropped", "lost"),
  { ...lookOf("dropped"), key: "marked", title: "Marked" },
];

export const TRANSFERS = columnsOf<TransferSummary>("transfers", "completed_share", "completion_p50", "completion_p95", "completion_p99", "slowdown_mean", "slowdown_p99");

/** More flows than this are shown together with those of the same [[flow]] table. */
const MOST_ROWS = 20;

interface CellsProps<T> {
  columns: Column<T>[];
  /** Each has a value for each run that has any. */
  rows: { head: preact.ComponentChildren; values: T[] }[];
  /** What the rows are. */
  of?: string;
}

export function Cells<T>({ columns, rows, of = "" }: CellsProps<T>) {
  const used = columns.filter(({ key }) =>
    rows.some(({ values }) => values.some((one) => !Number.isNaN(one[key] ?? NaN) && (key !== "marked" || one[key]))),
  );
  const cells = used.map(({ key, scale, decimals }) => {
    const found = rows.map(({ values }) => mean(values.map((one) => (one[key] as number) * scale)));
    return { found, write: estimates(found, decimals) };
  });
  return (
    <table>
      <thead>
        <tr>
          <th scope="col">{of}</th>
          {used.map(({ title, unit }) => (
            <th scope="col" class="number" key={title}>
              {title}
              {unit && <span class="soft"> ({unit})</span>}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map(({ head }, row) => (
          <tr key={row}>
            <th scope="row">{head}</th>
            {cells.map(({ found, write }, at) => (
              <Cell key={at} {...write(found[row] as Estimate)} />
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Cell({ value, half }: ReturnType<Written>) {
  return (
    <td class="number">
      {value}
      {half && <span class="soft small"> ±{half}</span>}
    </td>
  );
}

/** Flows that are shown in one row. */
export interface Group {
  name: string;
  cc: string;
  numbers: number[];
  isUnreliable: boolean;
}

const UNRELIABLE = ["udp", "rtp"];

export function groupsOf({ names, scenario, experiment }: Valid, together = scenario.flows.length > MOST_ROWS): Group[] {
  let next = 0;
  return names.flatMap((copies, table) => {
    const numbers = copies.map(() => next++);
    const cc = scenario.flows[numbers[0] ?? 0]?.cc ?? "";
    const isUnreliable = UNRELIABLE.includes(experiment.flow[table]?.transport ?? "");
    if (!together) return numbers.map((number, at) => ({ name: copies[at] ?? "", cc, numbers: [number], isUnreliable }));
    return [{ name: copies.length > 1 ? `${copies[0]} to ${copies.at(-1)}` : (copies[0] ?? ""), cc, numbers, isUnreliable }];
  });
}

/** The flows of a group in a run. */
export const flowsOf = ({ flows }: Summary, { numbers, isUnreliable }: Group): FlowRow =>
  rowOfFlows(numbers.flatMap((number) => flows[number] ?? []), isUnreliable);

/** The transfers of a group in a run; none if no flow of it has any. */
export function transfersIn({ transfers }: Summary, { numbers }: Group): TransferSummary[] {
  const found = numbers.flatMap((number) => transfers[number] ?? []);
  return found.length ? [averaged(found)] : [];
}

export function FlowName({ name, cc, colour }: Pick<Group, "name" | "cc"> & { colour: string }) {
  return (
    <>
      <i class="dot" style={{ background: colour }} />
      {name} <span class="soft">{styleOf(cc).label}</span>
    </>
  );
}

/** The completion times of flows of transfers. */
function Transfers({ checked, outputs, summaries }: { checked: Valid; outputs: Output[]; summaries: Summary[] }) {
  const rows = groupsOf(checked).flatMap((group) => {
    const values = summaries.flatMap((summary) => transfersIn(summary, group));
    return values.length ? [{ head: <FlowName {...group} colour={dotOf(checked, group.numbers[0] ?? 0)} />, values }] : [];
  });
  if (!rows.length) return null;
  const all = outputs.flatMap((output) => [...transfersOf(output, checked.scenario).values()].flat());
  const incomplete = all.filter(({ isComplete }) => !isComplete).length;
  return (
    <>
      <div class="scroll" tabIndex={0} role="region" aria-label="Transfers">
        <Cells of="Flow of transfers" columns={TRANSFERS} rows={rows} />
      </div>
      <p class="soft small">
        {incomplete > 0 && `Still running at the end: ${incomplete} of ${all.length} transfers. Percentiles count each as longer than its time so far (Kaplan and Meier); a dash means that too few have finished for that percentile. `}
        Slowdown: the completion time over the least possible; its mean is that of the complete transfers.
      </p>
    </>
  );
}

const startsOf = ({ scenario }: Valid): Set<number> => new Set(scenario.flows.map(({ start_ns }) => start_ns ?? 0));

export function Tables({ checked, outputs }: { checked: Valid; outputs: Output[] }) {
  const summaries = useMemo(() => outputs.map((output) => summarise(output, checked.scenario)), [checked, outputs]);
  const { links } = checked.scenario;
  const rows = groupsOf(checked).map((group) => ({
    head: <FlowName {...group} colour={dotOf(checked, group.numbers[0] ?? 0)} />,
    values: summaries.map((summary) => flowsOf(summary, group)),
  }));
  const linkRows = links.map(({ name }, number) => ({
    head: name,
    values: summaries.map((summary) => summary.links[number] as LinkSummary),
  }));
  const jain = mean(summaries.map((summary) => summary.jain));
  const { scale, unit } = lookOf("throughput");
  const rate = mean(summaries.map((summary) => summary.together * scale));
  const isOfAll = competing(checked.scenario).length === checked.scenario.flows.length;
  return (
    <div class="tables">
      <div class="scroll" tabIndex={0} role="region" aria-label="Flows">
        <Cells of={rows.length < checked.scenario.flows.length ? "Flow or mean of flows" : ""} columns={FLOWS} rows={rows} />
      </div>
      {checked.scenario.flows.length > 1 && (
        <p class="soft">
          All flows together {alike([rate.value])(rate.value)} {unit}
          {Number.isFinite(jain.value) && <>; {lookOf("jain").title}{isOfAll || " without flows of transfers"} <b>{jain.value.toFixed(3)}</b></>}
          {Number.isFinite(jain.half) && ` ±${jain.half.toFixed(3)}`}
          {startsOf(checked).size > 1 && ". Throughput: each flow from its start to its end; together: over the whole run."}
        </p>
      )}
      <div class="scroll" tabIndex={0} role="region" aria-label="Links">
        <Cells columns={LINKS} rows={linkRows} />
      </div>
      <Transfers checked={checked} outputs={outputs} summaries={summaries} />
      {checked.experiment.warmup && <p class="soft small">The first {checked.experiment.warmup} do not count (warm-up).</p>}
      {outputs.length > 1 && <p class="soft small">Means of {outputs.length} seeds and their 95 % intervals (Student’s t).</p>}
    </div>
  );
}
