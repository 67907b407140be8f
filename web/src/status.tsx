/** What goes on: problems of the file, progress of the runs, what they took. */

import { useFocusKept } from "./focus";
import { many } from "./results/format";
import type { Outcome } from "./state";

interface Props {
  outcome: Outcome;
  trusted: boolean;
}

export function Status(props: Props) {
  const group = useFocusKept<HTMLDivElement>();
  return (
    <div ref={group} tabIndex={-1} class="runs" role="group" aria-label="Runs">
      {said(props)}
    </div>
  );
}

function said({ outcome, trusted }: Props) {
  const { share, failure, problems, waits, valid, runs } = outcome;
  if (problems.length) {
    return (
      <ul class="problems" role="alert">
        {problems.slice(0, 5).map(({ line, key, problem }, at) => (
          <li key={at}>
            {line > 0 && <b>Line {line}: </b>}
            {key && <code>{key}</code>}
            {key && ": "}
            {problem}
          </li>
        ))}
      </ul>
    );
  }
  if (failure) return <p class="problems" role="alert">{failure}</p>;
  if (share !== null) {
    return (
      <p class="status" role="status" key="runs">
        <progress value={share} max={1} aria-label="Runs" /> {Math.round(share * 100)} %
        <button type="button" onClick={outcome.cancel}>
          Cancel
        </button>
      </p>
    );
  }
  if (waits && valid) {
    const packets = valid.work * valid.experiment.seeds.length;
    return (
      <p class="status" role="status" key="waits">
        <button type="button" class="main" onClick={outcome.run}>
          Run
        </button>{" "}
        {trusted ? `about ${many(packets)} packets` : "This scenario has code of its own; it runs in a worker without access to the page or the network."}
      </p>
    );
  }
  return <Ran valid={valid} runs={runs} />;
}

function Ran({ valid, runs }: Pick<Outcome, "valid" | "runs">) {
  if (!runs) return <p class="status soft" role="status">Starting the engine …</p>;
  const packets = runs.outputs.reduce((sum, { dataPackets }) => sum + dataPackets, 0);
  const took = runs.outputs.reduce((sum, output) => sum + output.took, 0) / 1e3;
  return (
    <div class="status soft" role="status" data-done={String(valid === runs.checked)}>
      {many(packets)} packets in {took.toFixed(2)} s
      {runs.checked.warnings.map((warning) => (
        <p key={warning} class="warning">
          {warning}
        </p>
      ))}
    </div>
  );
}
