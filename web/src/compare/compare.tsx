/** A scenario compared: with other algorithms on its path, or with another scenario. */

import { useState } from "preact/hooks";
import type { Valid } from "../engine/protocol";
import type { Lab } from "../state";
import { Algorithms } from "./algorithms";
import { Pair, type Shown } from "./pair";

interface Props extends Shown {
  lab: Lab;
  checked: Valid;
  algorithms: string[];
}

const KINDS = { pair: "Two scenarios", algorithms: "Algorithms on this path" } as const;
type Kind = keyof typeof KINDS;

export function Compare({ lab, checked, algorithms, ...shown }: Props) {
  const [kind, setKind] = useState<Kind>("pair");
  return (
    <>
      <div class="row kinds" role="group" aria-label="What is compared">
        {(Object.keys(KINDS) as Kind[]).map((one) => (
          <button type="button" key={one} aria-pressed={kind === one} onClick={() => setKind(one)}>
            {KINDS[one]}
          </button>
        ))}
      </div>
      {kind === "pair" && <Pair lab={lab} {...shown} />}
      {kind === "algorithms" && <Algorithms checked={checked} source={lab.source} algorithms={algorithms} choose={lab.setSource} />}
    </>
  );
}
