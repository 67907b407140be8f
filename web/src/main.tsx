/** Starts the page with the scenario of its address, of the file, or the first preset. */

import { render } from "preact";
import "uplot/dist/uPlot.min.css";
import { App } from "./app";
import type { Source } from "./engine/protocol";
import { FIRST } from "./scenario/presets";
import { unpack, viewOf } from "./share/link";
import "./style.css";

async function start(): Promise<void> {
  const inFile = document.querySelector<HTMLMetaElement>("meta[name=scenario]")?.content ?? "";
  let [found, complaint]: [Source | null, string] = [null, ""];
  try {
    found = (await unpack(location.hash)) ?? (await unpack(inFile));
  } catch (error) {
    complaint = `${error instanceof Error ? error.message : String(error)}. Here is another scenario instead.`;
  }
  const first = found ?? { toml: FIRST.text, code: "", traces: {}, beside: "" };
  const embedded = new URLSearchParams(location.search).has("embed");
  const host = document.getElementById("app");
  const view = viewOf(location.hash);
  if (host) render(<App first={first} view={view} embedded={embedded} complaint={complaint} />, host);
}

// Paper is light. These come before what the charts do then.
let theme: string | undefined;
addEventListener("beforeprint", () => {
  theme = document.documentElement.dataset["theme"];
  document.documentElement.dataset["theme"] = "light";
});
addEventListener("afterprint", () => {
  if (theme) document.documentElement.dataset["theme"] = theme;
});

void start();

/** For tests: the numbers that the page shows. */
export { jainOverTime, mean, summarise } from "./results/metrics";
export { throughputs } from "./results/rates";
export { summaryOf, survival } from "./results/transfers";
export { Film, stageOf } from "./watch/stage";
