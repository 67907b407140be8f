/** What differs between two scenarios. */

import type { Valid } from "../engine/protocol";

export interface Difference {
  key: string;
  a: string;
  b: string;
}

const ABSENT = "–";
/** These say what a scenario is about, or follow from the algorithm of a flow. */
const ABOUT = new Set(["title", "description", "sources"]);

/** The values of an experiment by their keys, such as `flow.first.cc`. */
function flat(value: unknown, path: string[], names: (string | undefined)[], found: Map<string, string>): Map<string, string> {
  if (Array.isArray(value) && value.some((one) => one && typeof one === "object" && !Array.isArray(one))) {
    value.forEach((one: { name?: string | null }, at) => flat({ ...one, name: null }, [...path, one.name ?? names[at] ?? String(at + 1)], [], found));
  } else if (value && typeof value === "object" && !Array.isArray(value)) {
    for (const [key, one] of Object.entries(value)) flat(one, [...path, key], key === "flow" ? names : [], found);
  } else if (value !== null && value !== undefined) {
    found.set(path.join("."), typeof value === "string" ? value : JSON.stringify(value));
  }
  return found;
}

/** The keys whose values differ, in the order of the files. */
export function differences(a: Valid, b: Valid): Difference[] {
  const [ofA, ofB] = [a, b].map(({ experiment, names }) => flat(experiment, [], names.map(([first]) => first), new Map()));
  const keys = [...new Set([...(ofA?.keys() ?? []), ...(ofB?.keys() ?? [])])];
  return keys
    .filter((key) => !ABOUT.has(key.split(".")[0] ?? "") && ofA?.get(key) !== ofB?.get(key))
    .map((key) => ({ key, a: ofA?.get(key) ?? ABSENT, b: ofB?.get(key) ?? ABSENT }));
}
