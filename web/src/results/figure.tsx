/** A panel with the buttons that save it. */

import type { ComponentProps } from "preact";
import { Chart } from "./chart";
import { png, save, svg } from "./export";

interface Props extends ComponentProps<typeof Chart> {
  /** What the names of saved files begin with. */
  name: string;
}

export function Figure({ name, ...chart }: Props) {
  const { panel, view } = chart;
  const file = `${name}-${panel.id}`;
  const saved = async (kind: "SVG" | "PNG"): Promise<void> => {
    const drawing = svg(panel, view);
    if (kind === "SVG") save(`${file}.svg`, drawing, "image/svg+xml");
    else save(`${file}.png`, await png(drawing), "image/png");
  };
  return (
    <div class="figure">
      <Chart {...chart} />
      <span class="save">
        {(["SVG", "PNG"] as const).map((kind) => (
          <button type="button" key={kind} class="quiet" title={`Save as ${kind}: ${panel.title}`} aria-label={`Save as ${kind}: ${panel.title}`} onClick={() => void saved(kind)}>
            {kind}
          </button>
        ))}
      </span>
    </div>
  );
}
