/** The algorithms of one flow, one after the other on the same path: a ranking with intervals. */

import { useEffect, useState } from "preact/hooks";
import { Cancelled } from "../engine/client";
import { useFocusKept } from "../focus";
import { isValid, type Output, type Source, type Valid } from "../engine/protocol";
import { setKey } from "../scenario/text";
import { engine, runAll } from "../runs";
import { columnsOf } from "../results/columns";
import { many } from "../results/format";
import { styled, styleOf } from "../results/looks";
import { mean, shareOf, summarise } from "../results/metrics";
import { groupThroughput } from "../results/rates";
import { Cells } from "../results/table";
import { summaryOf, transfersOf } from "../results/transfers";

interface Row {
  throughput: number;
  rival_throughput: number;
  jain: number;
  queue_delay_mean: number;
  retransmission_share: number;
  utilisation: number;
  /** Of all transfers of the run. */
  completed_share: number;
  completion_p99: number;
}

const COLUMNS = columnsOf<Row>("throughput", "rival_throughput", "jain", "queue_delay_mean", "retransmission_share", "utilisation", "completed_share", "completion_p99");

/** Algorithms for one path over TCP; those of UDT and of multipath connections need more than a name. */
const ELSEWHERE = new Set(["udt", "ar-udt", "lia", "olia", "balia", "wvegas", "dbac"]);
const USUAL = ["reno", "cubic", "bbr", "bbr3", "vegas", "copa", "illinois", "ledbat++"];

/** What the flows of a table and the others achieved in a run, as `dumbbell compare` says it. */
function rowOf(checked: Valid, output: Output, table: number): Row {
  const { flows, links, jain } = summarise(output, checked.scenario);
  const transfers = [...transfersOf(output, checked.scenario).values()].flat();
  const { completed_share, completion_p99 } = summaryOf(transfers);
  const first = checked.names.slice(0, table).flat().length;
  const isOwn = (flow: number): boolean => flow >= first && flow < first + (checked.names[table]?.length ?? 0);
  const own = flows.filter((_, flow) => isOwn(flow));
  const rate = (belongs: boolean): number =>
    groupThroughput(output, checked.scenario, [...flows.keys()].filter((flow) => isOwn(flow) === belongs));
  return {
    throughput: rate(true),
    rival_throughput: rate(false),
    jain,
    queue_delay_mean: mean(own.map((flow) => flow.queue_delay_mean)).value,
    retransmission_share: shareOf(own, "retransmitted"),
    utilisation: Math.max(...links.map(({ utilisation }) => utilisation || 0)),
    completed_share,
    completion_p99,
  };
}

interface Props {
  checked: Valid;
  source: Source;
  algorithms: string[];
  /** The [[flow]] in whose place the algorithms are. */
  flow: number;
  replace: (flow: number) => void;
  /** Shows one of the algorithms in the other tabs. */
  choose: (toml: string) => void;
}

/** A comparison of at most so many packets begins by itself. */
const AT_ONCE = 4e7;

type Rows = Record<string, Row[]>;

/** The scenario with another algorithm in a [[flow]]. */
const withCc = (source: Source, flow: number, cc: string): Source => ({ ...source, toml: setKey(source.toml, "flow", flow, "cc", cc) });

/** The rows of the algorithms whose runs have ended, and why the others' did not; nothing runs while it waits. */
function useRows(source: Source, flow: number, compared: string[], waits: boolean): [Rows, string] {
  const [rows, setRows] = useState<Rows>({});
  const [failure, fail] = useState("");

  const one = async (cc: string, signal: AbortSignal): Promise<void> => {
    const changed = withCc(source, flow, cc);
    const valid = await engine.ask({ kind: "check", source: changed }, { signal });
    if (!isValid(valid)) throw new Error(valid.errors[0]?.problem ?? "");
    const outputs = await runAll(changed, valid, { signal });
    if (signal.aborted) return;
    setRows((before) => ({ ...before, [cc]: outputs.map((output) => rowOf(valid, output, flow)) }));
  };

  useEffect(() => {
    setRows({});
    fail("");
    if (waits) return undefined;
    const controller = new AbortController();
    Promise.all(compared.map((cc) => one(cc, controller.signal))).catch((error: Error) => {
      if (error instanceof Cancelled || controller.signal.aborted) return;
      controller.abort();
      fail(error.message);
    });
    return () => controller.abort();
  }, [source, flow, waits, compared.join()]);
  return [rows, failure];
}

export function Algorithms({ checked, source, algorithms, flow, replace, choose }: Props) {
  const [all, setAll] = useState(false);
  const [started, start] = useState<Source | null>(null);
  const at = Math.min(flow, checked.names.length - 1);
  const known = algorithms.filter((cc) => !ELSEWHERE.has(cc.split("(")[0] ?? ""));
  const written = checked.experiment.flow[at]?.cc ?? "";
  const compared = all ? known : [...new Set([...USUAL.filter((cc) => known.includes(cc)), written])];
  const packets = checked.work * checked.experiment.seeds.length * compared.length;
  const waits = packets > AT_ONCE && started !== source;
  const [rows, failure] = useRows(source, at, compared, waits);
  const left = compared.filter((cc) => !(cc in rows)).length;
  const section = useFocusKept<HTMLElement>();
  return (
    <section ref={section} tabIndex={-1} class="compare" aria-label="Algorithms on this path">
      <div class="row">
        {checked.names.length > 1 && (
          <label>
            Flow{" "}
            <select value={at} onChange={(event) => replace(Number(event.currentTarget.value))}>
              {checked.names.map(([name], number) => (
                <option key={number} value={number}>
                  {name}
                </option>
              ))}
            </select>
          </label>
        )}
        <label>
          <input type="checkbox" checked={all} onChange={(event) => setAll(event.currentTarget.checked)} /> all algorithms
        </label>
        {waits && (
          <button type="button" class="main" onClick={() => start(source)}>
            Compare
          </button>
        )}
        <span role="status" class="soft">
          {waits ? `about ${many(packets)} packets` : failure || (left > 0 ? `${compared.length - left} of ${compared.length}` : `${compared.length} algorithms on this path`)}
        </span>
      </div>
      <Ranking rows={rows} seeds={checked.experiment.seeds.length} choose={(cc) => choose(withCc(source, at, cc).toml)} />
    </section>
  );
}

/** In what order algorithms are ranked; what one lacks comes last. */
const ORDERS = {
  throughput: { name: "throughput", sign: -1 },
  completed_share: { name: "completed transfers", sign: -1 },
  completion_p99: { name: "p99 completion time", sign: 1 },
} as const;

type Order = keyof typeof ORDERS;

function Ranking({ rows, seeds, choose }: { rows: Rows; seeds: number; choose: (cc: string) => void }) {
  const [order, setOrder] = useState<Order>("throughput");
  const hasTransfers = Object.values(rows).some((values) => values.some(({ completed_share }) => Number.isFinite(completed_share)));
  const by = hasTransfers ? order : "throughput";
  const place = (values: Row[]): number => {
    const { value } = mean(values.map((row) => row[by]));
    return Number.isNaN(value) ? Infinity : ORDERS[by].sign * value;
  };
  const ranked = Object.entries(rows)
    .map(([cc, values]) => ({ cc, values, at: place(values) }))
    .sort((a, b) => (a.at === b.at ? 0 : a.at - b.at));
  if (!ranked.length) return null;
  const head = (cc: string) => (
    <button type="button" class="quiet" title="Show this one" onClick={() => choose(cc)}>
      <i class="dot" style={{ background: styled(styleOf(cc).colour) }} />
      {styleOf(cc).label}
    </button>
  );
  return (
    <div class="tables">
      <div class="scroll" tabIndex={0} role="region" aria-label="Ranking">
        <Cells columns={COLUMNS} rows={ranked.map(({ cc, values }) => ({ head: head(cc), values }))} />
      </div>
      <p class="soft small">
        {hasTransfers ? (
          <label>
            In the order of{" "}
            <select value={by} onChange={(event) => setOrder(event.currentTarget.value as Order)}>
              {Object.entries(ORDERS).map(([key, { name }]) => (
                <option key={key} value={key}>
                  {name}
                </option>
              ))}
            </select>
          </label>
        ) : (
          "In the order of throughput."
        )}
        {hasTransfers && ". Completed, p99: of all transfers; those still running at the end count as longer than their time so far."}
        {seeds > 1
          ? " Means over the seeds and their 95 % intervals (Student’s t)."
          : " One seed: write more for intervals."}
      </p>
    </div>
  );
}
