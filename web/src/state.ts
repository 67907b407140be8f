/** The state of the page: the scenario, what the engine says of it, and its runs. */

import { useEffect, useRef, useState } from "preact/hooks";
import { Cancelled, Engine, Pool } from "./engine/client";
import { isValid, type Facts, type Output, type Problem, type Source, type Valid } from "./engine/protocol";
import { many } from "./results/format";
import { pack } from "./share/link";

/** Scenarios of at most so many packets run at once when they change. */
const AT_ONCE = 6e6;
/** No more rows of samples, and no more packets in links and queues, are kept in memory. */
const MOST_ROWS = 4e6;
const MOST_HELD = 2e7;
const PACKET_BITS = 12_000;

export const engine = new Engine();
let pool = new Pool();
let poolCode = "";

/** Workers with the code of a scenario; those with older code are closed. */
export function poolFor(code: string): Pool {
  if (code !== poolCode) {
    pool.close();
    [pool, poolCode] = [new Pool(code), code];
  }
  return pool;
}

export interface Runs {
  checked: Valid;
  outputs: Output[];
}

export interface Lab {
  source: Source;
  setSource: (source: Source) => void;
  facts: Facts | null;
  problems: Problem[];
  valid: Valid | null;
  runs: Runs | null;
  /** The completed share of the runs that go on; null if none does. */
  share: number | null;
  failure: string;
  /** Whether the scenario is too large to run without being asked to. */
  waits: boolean;
  /** Whether own code may run: it is the user's, or the user has started it. */
  trusted: boolean;
  run: () => void;
  cancel: () => void;
}

/** The code that a scenario runs; none if no flow has an algorithm of it. */
export const codeOf = (source: Source): string => (source.toml.includes("own.js:") ? source.code : "");

/** Why a scenario would not fit into the memory of a page; empty if it does. */
export function tooLarge({ scenario, experiment }: Valid): string {
  const rows = (scenario.flows.length * scenario.duration_ns * experiment.seeds.length) / scenario.sample_ns;
  if (rows > MOST_ROWS) {
    return `The samples would have ${many(rows)} rows, and a page takes ${many(MOST_ROWS)}. Write a longer sample, fewer seeds or flows, or use dumbbell run.`;
  }
  const rate = Math.max(...scenario.links.map(({ rate_bps }) => rate_bps ?? 0));
  const held = scenario.links.reduce((sum, { delay_ns, queue }) => {
    const packets = !queue ? 0 : "packets" in queue ? queue.packets : "bytes" in queue ? queue.bytes / 1500 : 0;
    return sum + (rate * delay_ns) / 1e9 / PACKET_BITS + Math.min(packets, 1e9);
  }, 0);
  if (held > MOST_HELD) {
    return `The links and queues can hold ${many(held)} packets, and a page takes ${many(MOST_HELD)}. Write a lower rate, delay or queue, or use dumbbell run.`;
  }
  return "";
}

export function useLab(first: Source): Lab {
  const [source, setSource] = useState(first);
  const [facts, setFacts] = useState<Facts | null>(null);
  const [problems, setProblems] = useState<Problem[]>([]);
  const [valid, setValid] = useState<Valid | null>(null);
  const [runs, setRuns] = useState<Runs | null>(null);
  const [share, setShare] = useState<number | null>(null);
  const [failure, fail] = useState("");
  const [waits, wait] = useState(false);
  // Code that came with a link or a file runs once the user has started it, or has changed it.
  const trusted = useRef(codeOf(first) === "");
  const abort = useRef<AbortController | null>(null);

  useEffect(() => void engine.ask({ kind: "facts" }).then(setFacts, (error: Error) => fail(error.message)), []);

  const cancel = (): void => {
    abort.current?.abort();
    setShare(null);
    wait(true);
  };

  const start = async (checked: Valid, of: Source): Promise<void> => {
    abort.current?.abort();
    const controller = new AbortController();
    abort.current = controller;
    const { seeds } = checked.experiment;
    const shares = seeds.map(() => 0);
    const report = (): void => {
      if (!controller.signal.aborted) setShare(shares.reduce((a, b) => a + b, 0) / shares.length);
    };
    wait(false);
    report();
    try {
      const asked = seeds.map((seed, at) => {
        const progress = (done: number): void => {
          shares[at] = done;
          report();
        };
        return poolFor(codeOf(of)).next().ask({ kind: "run", source: of, seed }, { progress, signal: controller.signal });
      });
      const outputs = await Promise.all(asked);
      if (controller.signal.aborted) return;
      setRuns({ checked, outputs });
      setShare(null);
    } catch (error) {
      if (error instanceof Cancelled || controller.signal.aborted) return;
      controller.abort();
      setShare(null);
      fail(error instanceof Error ? error.message : String(error));
    }
  };

  useEffect(() => {
    let over = false;
    void engine.ask({ kind: "check", source }).then((checked) => {
      if (over) return;
      fail("");
      if (!isValid(checked)) {
        abort.current?.abort();
        setShare(null);
        setProblems(checked.errors);
        return;
      }
      setProblems([]);
      setValid(checked);
      const refused = tooLarge(checked);
      if (refused) {
        abort.current?.abort();
        setShare(null);
        fail(refused);
      } else if (checked.work * checked.experiment.seeds.length <= AT_ONCE && (trusted.current || !codeOf(source))) {
        void start(checked, source);
      } else {
        abort.current?.abort();
        setShare(null);
        wait(true);
      }
    });
    const remembered = setTimeout(() => void remember(source), 300);
    return () => {
      over = true;
      clearTimeout(remembered);
    };
  }, [source]);

  const run = (): void => {
    trusted.current = true;
    if (valid && !problems.length && !tooLarge(valid)) void start(valid, source);
  };
  const change = (next: Source): void => {
    trusted.current ||= next.code !== source.code;
    setSource(next);
  };
  return { source, setSource: change, trusted: trusted.current || !codeOf(source), facts, problems, valid: problems.length ? null : valid, runs, share, failure, waits, run, cancel };
}

/** Keeps the scenario in the address, so that reloading the page brings it back. */
async function remember(source: Source): Promise<void> {
  const fragment = await pack(source);
  history.replaceState(null, "", `#${fragment}`);
}
