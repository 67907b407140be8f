/** A scenario compared: with other algorithms on its path, or with another scenario. */

import type { Valid } from "../engine/protocol";
import type { Lab } from "../state";
import { Algorithms } from "./algorithms";
import { Pair, type Shown } from "./pair";

interface Props extends Shown {
  lab: Lab;
  checked: Valid;
  algorithms: string[];
}

const KINDS = [
  [false, "Two scenarios"],
  [true, "Algorithms on this path"],
] as const;

export function Compare({ lab, checked, algorithms, ...shown }: Props) {
  const { view, show } = shown;
  return (
    <>
      <div class="row kinds" role="group" aria-label="What is compared">
        {KINDS.map(([ranks, label]) => (
          <button type="button" key={label} aria-pressed={view.ranks === ranks} onClick={() => show({ ranks })}>
            {label}
          </button>
        ))}
      </div>
      {view.ranks ? <Algorithms checked={checked} source={lab.source} algorithms={algorithms} choose={lab.setSource} /> : <Pair lab={lab} {...shown} />}
    </>
  );
}
