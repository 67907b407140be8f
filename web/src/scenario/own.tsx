/** The user's own algorithms, in JavaScript. */

import { javascript } from "@codemirror/lang-javascript";
import type { Source } from "../engine/protocol";
import { Editor } from "./editor";
import { setKey } from "./text";

const TEMPLATE = `// Reno, to begin with. The names are those of dumbbell.cc in Python.
class Mine extends WindowRule {
  increase(cwnd, acked, path, ack) {
    return acked / cwnd; // a packet each round trip
  }
  decrease(cwnd, path, event) {
    return cwnd / 2;
  }
}
`;

const NONE: [] = [];

/** The names of the classes in a user's code, as flows name them. */
export function classesOf(code: string): string[] {
  return [...code.matchAll(/^\s*class\s+(\w+)/gm)].map(([, name]) => `own.js:${name ?? ""}`);
}

export function OwnCode({ source, change }: { source: Source; change: (source: Source) => void }) {
  if (!source.code) {
    const begin = (): void => change({ ...source, code: TEMPLATE, toml: setKey(source.toml, "flow", 0, "cc", "own.js:Mine") });
    return (
      <button type="button" onClick={begin}>
        Write an algorithm
      </button>
    );
  }
  return (
    <details open>
      <summary>Your algorithm: {classesOf(source.code).join(", ") || "no class yet"}</summary>
      <Editor label="Your algorithm (JavaScript)" text={source.code} extensions={javascript()} facts={null} problems={NONE} change={(code) => change({ ...source, code })} />
    </details>
  );
}
