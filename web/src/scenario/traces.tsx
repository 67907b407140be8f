/** Files of links' traces and applications' rates, which a page cannot read from the disk by their name. */

import { useState } from "preact/hooks";
import type { Source } from "../engine/protocol";

/** A larger file does not fit into a link. */
const MOST = 1_000_000;

export function Traces({ source, change }: { source: Source; change: (source: Source) => void }) {
  const [refused, refuse] = useState("");
  const named = [...source.toml.matchAll(/^[ \t]*(?:trace|app_rates)[ \t]*=[ \t]*"([^"\n]+)"/gm)].map(([, name]) => name ?? "");
  if (!named.length) return null;
  const add = async (name: string, file: File): Promise<void> => {
    refuse("");
    if (file.size > MOST) {
      refuse(`${file.name} has ${file.size.toLocaleString("en")} bytes; a file in a page has ${MOST.toLocaleString("en")} at most`);
      return;
    }
    change({ ...source, traces: { ...source.traces, [name]: await file.text() } });
  };
  return (
    <div class="traces">
      {[...new Set(named)].map((name) => (
        <label key={name}>
          {name in source.traces ? "Replace" : "Add"} the file {name}{" "}
          <input type="file" onChange={(event) => event.currentTarget.files?.[0] && void add(name, event.currentTarget.files[0])} />
        </label>
      ))}
      {refused && <p class="problems" role="alert">{refused}</p>}
    </div>
  );
}
