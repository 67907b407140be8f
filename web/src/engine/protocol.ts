/** What the page and its workers say to each other. */

import type { Schema } from "../scenario/schema";

/** A problem of an experiment file; line and column count from 1, 0 if there is no place. */
export interface Problem {
  line: number;
  column: number;
  key: string;
  problem: string;
}

export interface LinkSpec {
  name: string;
  rate_bps: number | null;
  rates: [number, number][] | null;
  trace_ms: number[] | null;
  bucket_bytes: number | null;
  delay_ns: number;
  /** Times and delays, if the delay changes. */
  reroutes?: [number, number][];
  /** The most of a random extra delay. */
  jitter_ns?: number;
  reorder?: { delay_ns: number } | null;
  medium?: object | null;
  queue: { packets: number } | { bytes: number } | { ns: number } | null;
  aqm: object | null;
  loss: number;
  loss_model: object | null;
  loss_steps: [number, number][];
}

export interface PathSpec {
  path: string[];
  return_path?: string[];
  return_delay_ns?: number;
}

/** What is as by default is left out. */
export interface FlowSpec extends PathSpec {
  name: string;
  cc: string;
  start_ns?: number;
  stop_ns?: number;
  transfers?: object;
  app?: object;
  additional_subflows?: PathSpec[];
  stack?: { receive_window: number };
}

/** What the simulator takes: plain numbers. */
export interface Scenario {
  duration_ns: number;
  sample_ns: number;
  warmup_ns?: number;
  internals: boolean;
  links: LinkSpec[];
  flows: FlowSpec[];
}

export interface LinkKeys {
  name: string;
  rate: string | null;
  rates: unknown;
  trace: unknown;
  delay: string;
  queue: string | null;
  aqm: string | null;
  loss: number | string;
}

export interface FlowKeys {
  name: string | null;
  cc: string;
  path: string[] | null;
  paths: string[][] | null;
  rtt: string | null;
  start: string;
  stop: string | null;
  bytes: string | null;
  repeat: number;
  transport: string;
}

/** An experiment with every default written out. */
export interface Experiment {
  title: string;
  duration: string;
  warmup: string | null;
  seeds: number[];
  stack_options: Record<string, unknown>;
  link: LinkKeys[];
  flow: FlowKeys[];
}

export interface Valid {
  errors: [];
  work: number;
  names: string[][];
  warnings: string[];
  experiment: Experiment;
  scenario: Scenario;
}

export type Checked = Valid | { errors: Problem[] };

export const isValid = (checked: Checked): checked is Valid => checked.errors.length === 0;

/** A table: its columns by name. */
export type Table = Record<string, Float64Array>;

/** The tables of one run. */
export interface Output {
  seed: number;
  tables: Record<string, Table>;
  /** Names of the internals, and of those of subflows. */
  internals: string[];
  subflowInternals: string[];
  dataPackets: number;
  events: number;
  /** Time that the engine took, ms. */
  took: number;
}

/** Packets on links in a part of a run. */
export interface Hops {
  from: number;
  until: number;
  columns: Record<"entered" | "left" | "link" | "flow" | "number" | "size" | "kind", Float64Array>;
  drops: Float64Array;
  series: Table;
  links: Table;
}

/** The bits of a hop's `kind`. */
export const KIND = { fromSender: 1, retransmission: 2, marked: 4, dropped: 8, lost: 16 } as const;

/** What a scenario consists of: the file, own code, trace files. */
export interface Source {
  toml: string;
  code: string;
  traces: Record<string, string>;
  /** The file of the scenario that it is compared with; empty if there is none. */
  beside: string;
}

export type Task =
  | { kind: "check"; source: Source }
  | { kind: "facts" }
  | { kind: "run"; source: Source; seed: number }
  | { kind: "watch"; source: Source; seed: number; from: number; lead: number; sample: number; allDrops: boolean };

/** What the engine knows: names and texts for the form and the editor. */
export interface Facts {
  version: string;
  algorithms: string[];
  topics: string[];
  schema: Schema;
  starter: string;
  explanations: Record<string, string>;
}

export type Answer<T extends Task> = T extends { kind: "check" }
  ? Checked
  : T extends { kind: "facts" }
    ? Facts
    : T extends { kind: "run" }
      ? Output
      : Hops;

export type ToWorker = { id: number; task: Task } | { id: number; cancel: true } | { wasm: ArrayBuffer };

export type FromWorker =
  | { id: number; share: number }
  | { id: number; answer: Checked | Facts | Output | Hops }
  /** After a fatal failure the engine is in an unknown state. */
  | { id: number; failure: string; fatal: boolean };
