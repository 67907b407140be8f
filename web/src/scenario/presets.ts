/** Scenarios to begin with: exercises, examples, the papers' experiments. */

import made from "made/presets.json";

export interface Preset {
  group: string;
  name: string;
  text: string;
}

/** All scenarios, the exercises first. */
export const presets = (starter: string): Preset[] => [
  ...made,
  { group: "Basics", name: "The file that dumbbell init writes", text: starter },
];

export const [FIRST] = made as [Preset];
