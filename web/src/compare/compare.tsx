/** A scenario compared: with other algorithms on its path, or with another scenario. */

import type { Source, Valid } from "../engine/protocol";
import type { Lab } from "../state";
import { Algorithms } from "./algorithms";
import { Pair, type Shown } from "./pair";

interface Props extends Shown {
  lab: Lab;
  checked: Valid;
  /** What `checked` was read from. */
  source: Source;
  algorithms: string[];
}

const KINDS = [
  [null, "Two scenarios"],
  [0, "Algorithms on this path"],
] as const;

export function Compare({ lab, checked, source, algorithms, ...shown }: Props) {
  const { ranked } = shown.view;
  const rank = (flow: number | null): void => shown.show({ ranked: flow });
  return (
    <>
      <div class="row kinds" role="group" aria-label="What is compared">
        {KINDS.map(([first, label]) => (
          <button type="button" key={label} aria-pressed={(ranked === null) === (first === null)} onClick={() => rank(first)}>
            {label}
          </button>
        ))}
      </div>
      {ranked === null ? (
        <Pair lab={lab} {...shown} />
      ) : (
        <Algorithms checked={checked} source={source} algorithms={algorithms} flow={ranked} replace={rank} choose={(toml) => lab.setSource({ ...lab.source, toml })} />
      )}
    </>
  );
}
