/** A scenario as a link: compressed into the fragment of the address, which no server sees. */

import type { Source } from "../engine/protocol";

/** What stands before the packed scenario; the number is the version of the format. */
const MARK = "lab=1.";
/** No scenario is larger, bytes. */
export const MOST_BYTES = 2_000_000;

async function through(bytes: Uint8Array, stream: GenericTransformStream, most: number): Promise<Uint8Array> {
  const reader = (new Blob([bytes as BlobPart]).stream().pipeThrough(stream as never) as ReadableStream<Uint8Array>).getReader();
  const chunks: Uint8Array[] = [];
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    size += value.length;
    if (size > most) throw new Error(`the link holds more than ${most / 1e6} MB, the most that a scenario may have`);
    chunks.push(value);
  }
  const all = new Uint8Array(size);
  let at = 0;
  for (const chunk of chunks) {
    all.set(chunk, at);
    at += chunk.length;
  }
  return all;
}

function toBase64(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

export const TABS = { run: "Run", watch: "Watch", compare: "Compare" } as const;
export type Tab = keyof typeof TABS;

/** What of a scenario is shown. */
export interface View {
  tab: Tab;
  /** The time at which the animation begins, s; 0 for where there is most to see. */
  at: number;
  /** Whether the animation stands still. */
  paused: boolean;
  /** The span of time that figures show, s; null for all of it. */
  span: [number, number] | null;
  /** The flows that figures hide, by their numbers. */
  hidden: ReadonlySet<number>;
  /** The seed whose run is shown and played; null for all of them, of which the first is played. */
  seed: number | null;
  /** The internal variable that has a panel; empty if none has. */
  variable: string;
  /** The [[flow]], from 0, in whose place Compare ranks algorithms; null if it compares scenarios. */
  ranked: number | null;
}

/** How another scenario is shown. Who wants less motion starts the animation. */
export const beginning = (): Pick<View, "at" | "paused" | "span" | "hidden" | "seed" | "ranked"> => ({
  at: 0,
  paused: matchMedia("(prefers-reduced-motion: reduce)").matches,
  span: null,
  hidden: new Set(),
  seed: null,
  ranked: null,
});

/** What a fragment shows of its scenario. */
export function viewOf(fragment: string): View {
  const tab = /&tab=(\w+)/.exec(fragment)?.[1] ?? "";
  const at = Number(/&at=([\d.]+)/.exec(fragment)?.[1]);
  const [, from, to] = (/&zoom=([\d.]+)-([\d.]+)/.exec(fragment) ?? []).map(Number);
  const span: View["span"] = from !== undefined && to !== undefined && from < to ? [from, to] : null;
  const number = (key: string): number | null => {
    const found = new RegExp(`&${key}=(\\d+)`).exec(fragment)?.[1];
    return found === undefined ? null : Number(found);
  };
  const hidden = /&hide=(\d+(?:,\d+)*)/.exec(fragment)?.[1]?.split(",") ?? [];
  return {
    tab: Object.hasOwn(TABS, tab) ? (tab as Tab) : "run",
    at: at > 0 && at < Infinity ? at : 0,
    paused: fragment.includes("&paused") || beginning().paused,
    span,
    hidden: new Set(hidden.map(Number)),
    variable: /&variable=(\w+)/.exec(fragment)?.[1] ?? "",
    seed: number("seed"),
    ranked: number("rank"),
  };
}

/** A time as links have it. */
const brief = (time: number): string => String(Number(time.toFixed(6)));

function viewText({ tab, at, paused, span, hidden, seed, variable, ranked }: View): string {
  return [
    tab === "run" ? "" : `&tab=${tab}`,
    tab === "watch" && at ? `&at=${brief(at)}${paused ? "&paused" : ""}` : "",
    span ? `&zoom=${span.map(brief).join("-")}` : "",
    hidden.size ? `&hide=${[...hidden].join()}` : "",
    seed === null ? "" : `&seed=${seed}`,
    variable ? `&variable=${variable}` : "",
    ranked === null ? "" : `&rank=${ranked}`,
  ].join("");
}

/** The fragment of a scenario, without #; empty if it is larger than what a link holds. */
export async function pack(source: Source, view: View): Promise<string> {
  const content: Record<string, unknown> = { toml: source.toml };
  if (source.code.trim()) content["code"] = source.code;
  if (Object.keys(source.traces).length) content["traces"] = source.traces;
  if (source.beside) content["beside"] = source.beside;
  const bytes = new TextEncoder().encode(JSON.stringify(content));
  if (bytes.length > MOST_BYTES) return "";
  return MARK + toBase64(await through(bytes, new CompressionStream("deflate-raw"), Infinity)) + viewText(view);
}

const isText = (value: unknown): value is string => typeof value === "string";
const isTexts = (value: unknown): value is Record<string, string> =>
  typeof value === "object" && value !== null && !Array.isArray(value) && Object.values(value).every(isText);

/** The scenario of a fragment; null if it has none. Throws a sentence if it is damaged. */
export async function unpack(fragment: string): Promise<Source | null> {
  const at = fragment.indexOf("lab=");
  if (at < 0) return null;
  const text = fragment.slice(at);
  if (!text.startsWith(MARK)) throw new Error("the link is of another version of the laboratory");
  const base64 = /^[\w-]*/.exec(text.slice(MARK.length))?.[0] ?? "";
  let content: unknown;
  try {
    const bytes = Uint8Array.from(atob(base64.replaceAll("-", "+").replaceAll("_", "/")), (char) => char.charCodeAt(0));
    const unpacked = await through(bytes, new DecompressionStream("deflate-raw"), MOST_BYTES);
    content = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(unpacked));
  } catch (error) {
    if (error instanceof Error && error.message.startsWith("the link holds")) throw error;
    throw new Error("the link is damaged: a part of it is missing or was changed");
  }
  const { toml, code = "", traces = {}, beside = "" } = (content ?? {}) as Partial<Record<keyof Source, unknown>>;
  if (!isText(toml) || !isText(code) || !isText(beside) || !isTexts(traces)) throw new Error("the link holds no scenario");
  return { toml, code, traces, beside };
}
