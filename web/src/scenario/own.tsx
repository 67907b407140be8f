/** The user's own algorithms, in JavaScript. */

import { javascript } from "@codemirror/lang-javascript";
import { useState } from "preact/hooks";
import { classesOf } from "../engine/classes";
import type { Source } from "../engine/protocol";
import { useFocusKept } from "../focus";
import { Editor } from "./editor";
import { setKey } from "./text";

/** An algorithm to begin with, by the class that it extends. */
const TEMPLATES = {
  WindowRule: `// Reno, to begin with. The names are those of dumbbell.cc in Python.
class Mine extends WindowRule {
  increase(cwnd, acked, path, ack) {
    return acked / cwnd; // a packet each round trip
  }
  decrease(cwnd, path, event) {
    return cwnd / 2;
  }
}
`,
  RoundControl: `// Called once a round trip. The names are those of dumbbell.cc in Python.
class Mine extends RoundControl {
  on_round(path, report) {
    const queues = report.rtt_min !== null && report.rtt_min > 1.2 * path.min_rtt;
    this.cwnd = Math.max(queues || report.lost ? 0.9 * this.cwnd : 1.1 * this.cwnd, 4);
  }
  on_congestion(path, event) {
    if (event.signal === "timeout") this.cwnd = 4;
  }
  inspect() {
    return { cwnd: this.cwnd };
  }
}
`,
  CongestionControl: `// Called for each event. The names are those of dumbbell.cc in Python.
class Mine extends CongestionControl {
  on_ack(path, ack) {
    if (path.cwnd_limited && !path.reducing) this.cwnd += ack.acked / this.cwnd;
    if (ack.rate !== null) this.pacing_rate = 1.2 * ack.rate.rate; // bytes/s
  }
  on_congestion(path, event) {
    if (event.new_episode) this.cwnd = Math.max(this.cwnd / 2, 2);
    this.ssthresh = this.cwnd;
  }
}
`,
};
type Base = keyof typeof TEMPLATES;

const NONE: [] = [];

/** The algorithms of a user's code, as flows name them. */
export const algorithmsOf = (code: string): string[] => classesOf(code).map((name) => `own.js:${name}`);

export function OwnCode({ source, change }: { source: Source; change: (source: Source) => void }) {
  const [base, setBase] = useState<Base>("WindowRule");
  const group = useFocusKept<HTMLDivElement>();
  const begin = (): void => change({ ...source, code: TEMPLATES[base], toml: setKey(source.toml, "flow", 0, "cc", "own.js:Mine") });
  return (
    <div ref={group} tabIndex={-1} role="group" aria-label="Your algorithm">
      {source.code ? (
        <details open>
          <summary>Your algorithm: {algorithmsOf(source.code).join(", ") || "no class yet"}</summary>
          <Editor label="Your algorithm (JavaScript)" text={source.code} extensions={javascript()} facts={null} problems={NONE} change={(code) => change({ ...source, code })} />
        </details>
      ) : (
        <p class="row">
          <button type="button" onClick={begin}>
            Write an algorithm
          </button>
          <label>
            as a{" "}
            <select value={base} onChange={(event) => setBase(event.currentTarget.value as Base)}>
              {Object.keys(TEMPLATES).map((name) => (
                <option key={name}>{name}</option>
              ))}
            </select>
          </label>
        </p>
      )}
    </div>
  );
}
