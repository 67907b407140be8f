/** A panel with the buttons that save it. */

import type { ComponentProps } from "preact";
import { Chart } from "./chart";
import { useState } from "preact/hooks";
import { png, save, svg } from "./export";

interface Props extends ComponentProps<typeof Chart> {
  /** What the names of saved files begin with. */
  name: string;
}

export function Figure({ name, ...chart }: Props) {
  const { panel, view } = chart;
  const file = `${name}-${panel.id}`;
  const [failure, fail] = useState("");
  const write = async (kind: "SVG" | "PNG"): Promise<void> => {
    const drawing = svg(panel, view);
    if (kind === "SVG") save(`${file}.svg`, drawing, "image/svg+xml");
    else save(`${file}.png`, await png(drawing), "image/png");
  };
  const saved = (kind: "SVG" | "PNG"): void => {
    fail("");
    write(kind).catch((error: Error) => fail(`The ${kind} was not saved: ${error.message}.`));
  };
  return (
    <div class="figure">
      <Chart {...chart} />
      <span class="save">
        {(["SVG", "PNG"] as const).map((kind) => (
          <button type="button" key={kind} class="quiet" title={`Save as ${kind}: ${panel.title}`} aria-label={`Save as ${kind}: ${panel.title}`} onClick={() => saved(kind)}>
            {kind}
          </button>
        ))}
      </span>
      {failure && <p class="problems" role="alert">{failure}</p>}
    </div>
  );
}
