/** The state of the page: the scenario, what the engine says of it, and its runs. */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Cancelled } from "./engine/client";
import { isValid, type Checked, type Facts, type Problem, type Source, type Valid } from "./engine/protocol";
import { besideOf, codeOf, engine, isSame, refusalOf, runAll, type Runs } from "./runs";

/** Scenarios of at most so many packets run at once when they change. */
const AT_ONCE = 6e6;

/** A scenario as the engine checked it, and its runs. */
export interface Outcome {
  problems: Problem[];
  valid: Valid | null;
  /** The scenario as it was valid last. */
  latest: Valid | null;
  /** What `latest` was read from; null before. */
  of: Source | null;
  runs: Runs | null;
  setRuns: (runs: Runs | null) => void;
  /** The completed share of the runs that go on; null if none does. */
  share: number | null;
  failure: string;
  /** Whether the scenario does not run without being asked to: it is large, or has code of a stranger. */
  waits: boolean;
  run: () => void;
  cancel: () => void;
  /** Says that the next scenario is another one, not this one changed: what was valid is not kept. */
  forget: () => void;
}

/** Whether its runs are those of a scenario before. */
export const isStale = ({ valid, runs }: Outcome): boolean => valid !== runs?.checked;

export interface Lab extends Outcome {
  source: Source;
  setSource: (source: Source) => void;
  /** Shows another scenario; code that comes with it runs once the user has started it. */
  open: (source: Source) => void;
  /** Exchanges, keeps or drops the scenarios that are compared; each has the runs that either had of it. */
  arrange: (source: Source) => void;
  facts: Facts | null;
  /** Whether own code is the user's, or the user has started it. */
  isOwn: boolean;
  /** Whether the scenarios may run, also those that were valid last: they have no own code, or it is the user's. */
  trusted: boolean;
  /** The scenario that is compared with this one. */
  beside: Outcome;
}

/** The latest runs, and what starts and stops them. */
function useRuns() {
  const [runs, setRuns] = useState<Runs | null>(null);
  const [share, setShare] = useState<number | null>(null);
  const [failure, fail] = useState("");
  const abort = useRef<AbortController | null>(null);

  const stop = (): void => {
    abort.current?.abort();
    setShare(null);
  };

  const start = async (checked: Valid, of: Source): Promise<void> => {
    stop();
    const controller = new AbortController();
    abort.current = controller;
    const { signal } = controller;
    setShare(0);
    try {
      const outputs = await runAll(of, checked, { progress: (done) => !signal.aborted && setShare(done), signal });
      if (signal.aborted) return;
      setRuns({ of, checked, outputs });
      setShare(null);
    } catch (error) {
      if (error instanceof Cancelled || signal.aborted) return;
      stop();
      fail(error instanceof Error ? error.message : String(error));
    }
  };
  return { runs, setRuns, share, failure, fail, start, stop };
}

/** Checks a scenario when it changes, and runs it unless that has to be asked for. */
function useOutcome(source: Source | null, trusted: boolean, trust: () => void): Outcome {
  const [problems, setProblems] = useState<Problem[]>([]);
  const [valid, setValid] = useState<Valid | null>(null);
  const [validOf, setOf] = useState<Source | null>(null);
  const { runs, setRuns, share, failure, fail, start, stop } = useRuns();
  const [waits, wait] = useState(false);
  const [isOther, forget] = useState(false);
  /** The scenario that the user has started. */
  const started = useRef<Source | null>(null);

  const begin = (checked: Valid, of: Source): void => {
    wait(false);
    void start(checked, of);
  };

  const follow = (checked: Checked, of: Source): void => {
    setProblems(checked.errors);
    fail("");
    forget(false);
    const refused = isValid(checked) ? refusalOf(checked) : "";
    const isSmall = isValid(checked) && checked.work * checked.experiment.seeds.length <= AT_ONCE;
    const begins = !refused && trusted && (isSmall || started.current === of);
    if (isOther && !begins) setRuns(null);
    if (isOther || isValid(checked)) {
      setValid(isValid(checked) ? checked : null);
      setOf(of);
    }
    if (!isValid(checked)) return stop();
    if (runs && isSame(runs.of, of)) {
      wait(false);
      setRuns({ ...runs, checked });
      return stop();
    }
    if (begins) return begin(checked, of);
    stop();
    fail(refused);
    wait(!refused);
  };

  useEffect(() => {
    if (!source) return stop();
    let over = false;
    engine.ask({ kind: "check", source }).then(
      (checked) => over || follow(checked, source),
      (error: Error) => over || (stop(), setValid(null), fail(error.message)),
    );
    return () => void (over = true);
  }, [source?.toml, source?.code, source?.traces, trusted]);

  const run = (): void => {
    if (!source || !valid || problems.length || refusalOf(valid)) return;
    started.current = source;
    if (trusted) begin(valid, source);
    else trust();
  };
  const cancel = (): void => {
    stop();
    wait(true);
  };
  return { problems, valid: problems.length || isOther ? null : valid, latest: valid, of: validOf, runs, setRuns, share, failure, waits, run, cancel, forget: () => forget(true) };
}

export function useLab(first: Source): Lab {
  const [source, setSource] = useState(first);
  const [facts, setFacts] = useState<Facts | null>(null);
  const [complaint, complain] = useState("");
  // Code that came with a link or a file runs once the user has started it, or has changed it.
  const [isOwn, trust] = useState(!first.code.trim());
  const isTrusted = (one: Source): boolean => isOwn || !codeOf(one);
  const trusted = isTrusted(source);
  const outcome = useOutcome(source, trusted, () => trust(true));
  const other = useMemo(() => besideOf(source), [source.beside, source.code, source.traces]);
  const beside = useOutcome(other, trusted, () => trust(true));

  useEffect(() => void engine.ask({ kind: "facts" }).then(setFacts, (error: Error) => complain(error.message)), []);

  const change = (next: Source): void => {
    if (next.code !== source.code) trust(true);
    setSource(next);
  };
  const open = (next: Source): void => {
    if (next.code !== source.code) trust(!next.code.trim());
    if (!isSame(next, source)) outcome.forget();
    if (!isSame(besideOf(next), other)) beside.forget();
    setSource(next);
  };
  const arrange = (next: Source): void => {
    const known = [outcome.runs, beside.runs];
    const move = (side: Outcome, before: Source | null, now: Source | null): void => {
      if (!isSame(before, now)) side.setRuns(known.find((runs) => runs && isSame(runs.of, now)) ?? null);
    };
    move(outcome, source, next);
    move(beside, other, besideOf(next));
    setSource(next);
  };
  return { ...outcome, failure: complaint || outcome.failure, source, setSource: change, open, arrange, isOwn, trusted: trusted && isTrusted(outcome.of ?? source), facts, beside };
}
