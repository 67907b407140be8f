/** The engine in a worker: one task at a time, in slices, so that it can be cancelled. */

import * as engine from "engine";
import { classesOf } from "./classes";
import { adopt, forget, provide } from "./own";
import type { Checked, Facts, FromWorker, Hops, Output, Source, Table, Task, ToWorker } from "./protocol";

/** A slice lasts so long, ms; between slices the worker reads its messages. */
const SLICE = 25;

const cancelled = new Set<number>();
let queue: Promise<void> = Promise.resolve();

function post(message: FromWorker, transfer: Transferable[] = []): void {
  (self as unknown as Worker).postMessage(message, transfer);
}

const { port1, port2 } = new MessageChannel();
/** Lets waiting messages in; faster than a timer. */
function breathe(): Promise<void> {
  return new Promise((done) => {
    port1.onmessage = () => done();
    port2.postMessage(null);
  });
}

class Cancelled extends Error {}

/** Steps a run until `until` (a share of its time) is reached or `isDone`. */
async function advance(
  id: number,
  run: engine.Run,
  until: number,
  isDone: () => boolean = () => false,
): Promise<number | undefined> {
  for (;;) {
    const begin = performance.now();
    let share: number | undefined;
    do {
      share = run.step();
      if (share === undefined || share >= until || isDone()) return share;
    } while (performance.now() - begin < SLICE);
    post({ id, share });
    await breathe();
    if (cancelled.has(id)) throw new Cancelled();
  }
}

function tableOf(tables: engine.Tables, name: string): Table {
  return Object.fromEntries(tables.columns(name).map((column) => [column, tables.column(name, column)]));
}

async function simulate(id: number, source: Source, seed: number): Promise<Output> {
  forget();
  const begin = performance.now();
  const files = filesOf(source);
  const run = new engine.Run(source.toml, files, BigInt(seed), 0);
  files.free();
  await advance(id, run, Infinity);
  const tables = run.finish();
  const output: Output = {
    seed,
    tables: Object.fromEntries(tables.names().map((name) => [name, tableOf(tables, name)])),
    internals: tables.texts("internals", "name"),
    subflowInternals: tables.texts("subflow_internals", "name"),
    dataPackets: tables.data_packets,
    events: tables.events,
    took: performance.now() - begin,
  };
  tables.free();
  return output;
}

const MAX_HOPS = 300_000;

type Watch = Extract<Task, { kind: "watch" }>;

/** Runs to shortly before `from`, and records hops from there on. */
async function watch(id: number, task: Watch): Promise<Hops> {
  forget();
  const files = filesOf(task.source);
  const run = new engine.Run(task.source.toml, files, BigInt(task.seed), task.sample);
  const checked = JSON.parse(engine.check(task.source.toml, files)) as Checked;
  files.free();
  if (!("scenario" in checked)) throw new Error("the file is not valid");
  const duration = checked.scenario.duration_ns / 1e9;
  if (task.allDrops) run.record_drops();
  const begin = Math.max(task.from - task.lead, 0);
  if (begin > 0) await advance(id, run, begin / duration);
  run.record_hops(MAX_HOPS);
  const share = await advance(id, run, Infinity, () => run.has_recorded());
  const names = ["entered", "left", "link", "flow", "number", "size", "kind"] as const;
  const columns = Object.fromEntries(names.map((name) => [name, run.hops(name)])) as Hops["columns"];
  if (task.allDrops) await advance(id, run, Infinity);
  const drops = run.drops();
  const tables = run.finish();
  const [series, links] = [tableOf(tables, "series"), tableOf(tables, "links")];
  tables.free();
  return { from: begin, until: share === undefined ? duration : share * duration, columns, drops, series, links };
}

function filesOf(source: Source): engine.Files {
  const files = new engine.Files();
  for (const name of classesOf(source.code)) files.add_class(`own.js:${name}`);
  for (const [path, text] of Object.entries(source.traces)) files.add_trace(path, text);
  return files;
}

function facts(): Facts {
  const topics = engine.topics();
  return {
    version: engine.version(),
    algorithms: engine.algorithms(),
    topics,
    schema: JSON.parse(engine.schema()) as Facts["schema"],
    starter: engine.starter(),
    explanations: Object.fromEntries(topics.map((topic) => [topic, engine.explain(topic) ?? ""])),
  };
}

async function answer(id: number, task: Task): Promise<Checked | Facts | Output | Hops> {
  switch (task.kind) {
    case "facts":
      return facts();
    case "check": {
      const files = filesOf(task.source);
      const said = engine.check(task.source.toml, files);
      files.free();
      return JSON.parse(said) as Checked;
    }
    case "run":
      return simulate(id, task.source, task.seed);
    case "watch":
      return watch(id, task);
  }
}

/** The buffers of an answer, which move to the page without a copy. */
function buffers(value: unknown): ArrayBuffer[] {
  if (value instanceof Float64Array) return [value.buffer as ArrayBuffer];
  return value && typeof value === "object" ? Object.values(value).flatMap(buffers) : [];
}

const TOO_LARGE = "A page has less memory than dumbbell run: try that, or a smaller scenario.";

async function work(id: number, task: Task): Promise<void> {
  if (cancelled.delete(id)) return;
  try {
    const found = await answer(id, task);
    post({ id, answer: found }, task.kind === "run" || task.kind === "watch" ? buffers(found) : []);
  } catch (error) {
    if (!(error instanceof Cancelled)) {
      const text = error instanceof Error ? error.message : String(error);
      const fatal = error instanceof WebAssembly.RuntimeError || error instanceof RangeError;
      post({ id, failure: fatal ? `The engine stopped (${text}). ${TOO_LARGE}` : text, fatal });
    }
  }
  cancelled.delete(id);
}

// The user's code follows this script in the same worker; it finds these.
provide();
Object.assign(globalThis, { adopt });

self.onmessage = ({ data }: MessageEvent<ToWorker>) => {
  if ("wasm" in data) {
    engine.initSync({ module: data.wasm });
  } else if ("cancel" in data) {
    cancelled.add(data.id);
  } else {
    queue = queue.then(() => work(data.id, data.task));
  }
};
