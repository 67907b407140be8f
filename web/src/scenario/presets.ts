/** Scenarios to begin with: lessons, examples, the papers' experiments. */

import made from "made/presets.json";

export interface Preset {
  group: string;
  name: string;
  text: string;
}

/** One link and some flows as a file. */
function dumbbell(title: string, link: string, flows: string[], more = 'duration = "60 s"'): string {
  const tables = flows.map((flow) => `[[flow]]\n${flow.split("; ").join("\n")}\n`).join("\n");
  return `title = "${title}"\n${more}\n\n[[link]]\nname = "bottleneck"\n${link.split("; ").join("\n")}\n\n${tables}`;
}

const LESSONS: Preset[] = [
  {
    name: "BBR against CUBIC",
    text: dumbbell(
      "BBR against CUBIC",
      'rate = "50 Mbit/s"; delay = "20 ms"; queue = "1 BDP"',
      ['name = "bbr"; cc = "bbr3"', 'name = "cubic"; cc = "cubic"; start = "5 s"'],
      'duration = "60 s"\nstart_jitter = "100 ms"',
    ),
  },
  {
    name: "The sawtooth of AIMD",
    text: dumbbell("The sawtooth of AIMD", 'rate = "10 Mbit/s"; delay = "25 ms"; queue = "1 BDP"', ['name = "reno"; cc = "reno"']),
  },
  {
    name: "Bufferbloat",
    text: dumbbell(
      "Bufferbloat: an upload and a call",
      'rate = "10 Mbit/s"; delay = "15 ms"; queue = "16 BDP"',
      ['name = "upload"; cc = "cubic"', 'name = "call"; cc = "reno"; start = "10 s"; app_rate = "500 kbit/s"'],
    ),
  },
  {
    name: "The same with FQ-CoDel",
    text: dumbbell(
      "An upload and a call behind FQ-CoDel",
      'rate = "10 Mbit/s"; delay = "15 ms"; aqm = "fq_codel"',
      ['name = "upload"; cc = "cubic"', 'name = "call"; cc = "reno"; start = "10 s"; app_rate = "500 kbit/s"'],
    ),
  },
  {
    name: "DCTCP and ECN marks",
    text: dumbbell(
      "DCTCP and ECN marks",
      'rate = "100 Mbit/s"; delay = "1 ms"; aqm = "codel(ce_threshold=1 ms)"',
      ['name = "first"; cc = "dctcp"', 'name = "second"; cc = "dctcp"; start = "2 s"'],
      'duration = "10 s"\nsample = "20 ms"\n\n[stack_options]\necn = "accurate"',
    ),
  },
].map((preset) => ({ group: "Lessons", ...preset }));

export const presets = (starter: string): Preset[] => [
  ...LESSONS,
  { group: "Lessons", name: "The file that dumbbell init writes", text: starter },
  ...made,
];

export const [FIRST] = LESSONS as [Preset];
