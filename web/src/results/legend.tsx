/** The lines of the flows; a click hides one. */

import type { Valid } from "../engine/protocol";
import { styled, type Line } from "./looks";
import { flowLooks, MOST_FLOWS } from "./panels";

interface Props {
  checked: Valid;
  hidden: ReadonlySet<number>;
  toggle: (hidden: ReadonlySet<number>) => void;
}

/** A piece of a line. */
export function Stroke({ colour, dash }: Pick<Line, "colour" | "dash">) {
  return (
    <svg viewBox="0 0 24 8" width="24" height="8" aria-hidden="true">
      <path d="M0 4H24" style={{ stroke: styled(colour), strokeWidth: 2.5, strokeDasharray: dash.join(" ") }} />
    </svg>
  );
}

export function Legend({ checked, hidden, toggle }: Props) {
  const flip = (flow: number): void => {
    const next = new Set(hidden);
    if (!next.delete(flow)) next.add(flow);
    toggle(next);
  };
  const more = checked.scenario.flows.length - MOST_FLOWS;
  return (
    <div class="legend">
      {flowLooks(checked).map(({ flow, label, colour, dash }) => (
        <button type="button" key={flow} aria-pressed={!hidden.has(flow)} onClick={() => flip(flow)}>
          <Stroke colour={colour} dash={dash} />
          {label}
        </button>
      ))}
      {more > 0 && <span class="soft">and {more} more</span>}
    </div>
  );
}
