/** Workers with the engine, as the page uses them. */

import { classesOf } from "./classes";
import type { Answer, FromWorker, Task, ToWorker } from "./protocol";

interface Waiting {
  task: Task;
  resolve: (answer: never) => void;
  reject: (error: Error) => void;
  progress: ((share: number) => void) | undefined;
}

/** What a task ends with that its caller has cancelled. */
export class Cancelled extends Error {}

/** A text of the page that is not shown: the engine, compressed, or the worker's script. */
const textOf = (id: string): string => document.getElementById(id)?.textContent ?? "";

async function unpack(): Promise<ArrayBuffer> {
  const bytes = Uint8Array.from(atob(textOf("engine")), (char) => char.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}

let unpacked: Promise<ArrayBuffer> | undefined;

/** How long own code may take without giving the worker back, ms. */
const PATIENCE = 5000;

/**
 * A user's code as it follows the worker's script: in a function of its own, with its classes handed
 * to the engine. It has no access to the page, and the page's policy forbids it any request.
 */
function wrapped(code: string, line: number): string {
  const classes = `{${classesOf(code).map((name) => `...(typeof ${name} === "function" && { ${name} })`).join(", ")}}`;
  return `;(() => { "use strict";\n${code}\n;globalThis.adopt(${classes}, ${line}, ${code.split("\n").length}); })();`;
}

/** A worker; tasks that are given to it are done one after the other. It starts with the first task. */
export class Engine {
  private worker: Promise<Worker> | null = null;
  private waiting = new Map<number, Waiting>();
  private last = 0;

  private timer: ReturnType<typeof setTimeout> | undefined;

  /** With own code, if any. */
  constructor(private readonly code = "") {}

  /** Ends the worker and all that it does; the next task starts another one. */
  close(): void {
    this.fail("the worker was closed");
  }

  /** How many tasks wait or run. */
  get load(): number {
    return this.waiting.size;
  }

  ask<T extends Task>(
    task: T,
    options: { progress?: (share: number) => void; signal?: AbortSignal } = {},
  ): Promise<Answer<T>> {
    const id = ++this.last;
    const asked = new Promise<Answer<T>>((resolve, reject) => {
      this.waiting.set(id, { task, resolve, reject, progress: options.progress });
    });
    options.signal?.addEventListener("abort", () => {
      if (!this.waiting.has(id)) return;
      this.settle(id)?.reject(new Cancelled("cancelled"));
      void this.worker?.then((worker) => this.post(worker, { id, cancel: true }));
    });
    this.send(id, task);
    return asked;
  }

  private send(id: number, task: Task): void {
    this.worker ??= this.start();
    void this.worker.then((worker) => {
      if (this.waiting.has(id)) this.post(worker, { id, task });
      this.expect();
    });
  }

  private async start(): Promise<Worker> {
    unpacked ??= unpack();
    const wasm = await unpacked;
    const script = `${textOf("worker")}\n`;
    const first = script.split("\n").length + 1;
    const own = this.code.trim() ? wrapped(this.code, first) : "";
    const url = URL.createObjectURL(new Blob([script, own], { type: "text/javascript" }));
    const worker = new Worker(url);
    setTimeout(() => URL.revokeObjectURL(url), 10_000); // it is loaded by then
    worker.onmessage = ({ data }: MessageEvent<FromWorker>) => this.receive(data);
    worker.onerror = (event) => {
      const line = event.lineno - first + 1;
      this.fail(`${own && line > 0 ? `own.js, line ${line}: ` : ""}${event.message || "the worker stopped"}`);
    };
    this.post(worker, { wasm });
    return worker;
  }

  private post(worker: Worker, message: ToWorker): void {
    worker.postMessage(message);
  }

  private settle(id: number): Waiting | undefined {
    const waiting = this.waiting.get(id);
    this.waiting.delete(id);
    if (!this.waiting.size) clearTimeout(this.timer);
    return waiting;
  }

  /** Own code that does not come back is ended. */
  private expect(): void {
    clearTimeout(this.timer);
    if (!this.code.trim() || !this.waiting.size) return;
    this.timer = setTimeout(() => this.fail(`own.js: the code has not returned for ${PATIENCE / 1e3} s; it was stopped`), PATIENCE);
  }

  private receive(data: FromWorker): void {
    this.expect();
    if ("share" in data) {
      this.waiting.get(data.id)?.progress?.(data.share);
    } else if ("answer" in data) {
      this.settle(data.id)?.resolve(data.answer as never);
    } else {
      this.settle(data.id)?.reject(new Error(data.failure));
      if (!data.fatal) return;
      this.stop();
      for (const [id, { task }] of this.waiting) this.send(id, task);
    }
  }

  private fail(text: string): void {
    for (const id of [...this.waiting.keys()]) this.settle(id)?.reject(new Error(text));
    this.stop();
  }

  private stop(): void {
    clearTimeout(this.timer);
    void this.worker?.then((worker) => worker.terminate());
    this.worker = null;
  }
}

/** At most so many runs go on at once. */
const MOST = 8;

/** Workers for several runs at once. */
export class Pool {
  private engines: Engine[] = [];
  private readonly most = Math.max(1, Math.min(MOST, (navigator.hardwareConcurrency || 2) - 1));

  constructor(private readonly code = "") {}

  close(): void {
    for (const engine of this.engines) engine.close();
  }

  /** Whether a task of it waits or runs. */
  get isBusy(): boolean {
    return this.engines.some(({ load }) => load > 0);
  }

  /** The worker with the least to do; a new one if all are busy and there may be more. */
  next(): Engine {
    const idle = this.engines.find((engine) => engine.load === 0);
    if (idle) return idle;
    if (this.engines.length < this.most) {
      const engine = new Engine(this.code);
      this.engines.push(engine);
      return engine;
    }
    return this.engines.reduce((a, b) => (b.load < a.load ? b : a));
  }
}
