/** Changes keys in the text of an experiment file; comments and order stay. */

export type Section = "experiment" | "link" | "flow" | "stack_options";

interface Span {
  /** The line of the header, -1 for the keys before any header. */
  header: number;
  /** One past the last line. */
  end: number;
}

const HEADER = /^\s*\[/;

/** Where a header, or a key and its value, ends, which may be lines below, and the comment after it; `isOpen` if it does not end. */
function statementAt(lines: string[], first: number): { end: number; note: string; isOpen: boolean } {
  let [depth, quote] = [0, ""];
  for (let line = first; line < lines.length; line += 1) {
    const text = lines[line] ?? "";
    let note = "";
    for (const { 0: token, index } of text.matchAll(/\\.|"""|'''|["'[\]{}#]/g)) {
      if (quote) {
        if (token === quote) quote = "";
      } else if (token === "#") {
        note = text.slice(text.slice(0, index).trimEnd().length);
        break;
      } else if (/^["']/.test(token)) {
        quote = token;
      } else {
        depth += "[{".includes(token) ? 1 : -1;
      }
    }
    if (quote.length < 3) quote = "";
    if (depth <= 0 && !quote) return { end: line + 1, note, isOpen: false };
  }
  return { end: first + 1, note: "", isOpen: true };
}

/** The lines in which statements begin. After one that does not end, each line counts as one: to search on from each takes quadratic time. */
function beginnings(lines: string[], from: number, to: number): number[] {
  const found: number[] = [];
  let isOpen = false;
  for (let at = from; at < to; ) {
    found.push(at);
    if (isOpen) {
      at += 1;
      continue;
    }
    const statement = statementAt(lines, at);
    [at, isOpen] = [statement.end, statement.isOpen];
  }
  return found;
}

/** Where the sections of this name are, in order; `whole` with the tables in them: [flow.stack_options]. */
function sections(lines: string[], section: Section, whole = false): Span[] {
  const headers = beginnings(lines, 0, lines.length).filter((at) => HEADER.test(lines[at] ?? ""));
  if (section === "experiment") return [{ header: -1, end: headers[0] ?? lines.length }];
  const name = section === "stack_options" ? /^\s*\[\s*stack_options\s*\]/ : new RegExp(`^\\s*\\[\\[\\s*${section}\\s*\\]\\]`);
  const inside = new RegExp(`^\\s*\\[+\\s*${section}\\s*\\.`);
  return headers.flatMap((header, at) => {
    if (!name.test(lines[header] ?? "")) return [];
    const next = headers.slice(at + 1).find((other) => !whole || !inside.test(lines[other] ?? ""));
    return [{ header, end: next ?? lines.length }];
  });
}

/** One past the last line of a section that is neither empty nor a comment before the next one. */
function contentEnd(lines: string[], span: Span): number {
  let end = span.end;
  while (end > span.header + 1 && /^\s*(#.*)?$/.test(lines[end - 1] ?? "")) end -= 1;
  return end;
}

/** A key as a pattern; one of a table in the section has a dot. */
const written = (key: string): string => `^\\s*${key.split(".").map((part) => `(?:${part}|"${part}")`).join("\\s*\\.\\s*")}\\s*`;

function findKey(lines: string[], span: Span, key: string, after = "="): number {
  const is = new RegExp(written(key) + after);
  return beginnings(lines, span.header + 1, span.end).find((at) => is.test(lines[at] ?? "")) ?? -1;
}

export type Value = string | number | boolean | string[];

/** A value as TOML. */
export function toToml(value: Value): string {
  if (Array.isArray(value)) return `[${value.map(toToml).join(", ")}]`;
  return typeof value === "string" ? JSON.stringify(value) : String(value);
}

/**
 * Sets a key of the `at`-th section (from 0), or removes it with `null`. A comment that follows the
 * old value stays unless it would no longer be true: comments with a number go.
 */
export function setKey(text: string, section: Section, at: number, key: string, value: Value | null): string {
  const lines = text.split("\n");
  const span = sections(lines, section)[at];
  if (span && value !== null) replaceKey(lines, span, key, value);
  else if (span) removeKey(lines, section, at, key);
  else if (value !== null && section === "stack_options") addOptions(lines, key, value);
  return lines.join("\n");
}

function replaceKey(lines: string[], span: Span, key: string, value: Value): void {
  const line = findKey(lines, span, key);
  if (line < 0) return void lines.splice(contentEnd(lines, span), 0, `${key} = ${toToml(value)}`);
  const { end, note } = statementAt(lines, line);
  const [head = ""] = (lines[line] ?? "").split("=");
  lines.splice(line, end - line, `${head}= ${toToml(value)}${/\d/.test(note) ? "" : note}`);
}

/** Removes a key; a table also if its keys have dots or it has a header of its own. */
function removeKey(lines: string[], section: Section, at: number, key: string): void {
  const header = new RegExp(`^\\s*\\[\\s*${section}\\s*\\.\\s*${key}\\s*\\]`);
  const own = new RegExp(`${written(key)}[.=]`);
  const [span, whole] = [sections(lines, section)[at], sections(lines, section, true)[at]];
  if (!span || !whole) return;
  const all = beginnings(lines, whole.header + 1, contentEnd(lines, whole));
  let inside = false;
  const gone = all.filter((line) => {
    if (HEADER.test(lines[line] ?? "")) inside = header.test(lines[line] ?? "");
    return inside || (line < span.end && own.test(lines[line] ?? ""));
  });
  for (const line of gone.reverse()) lines.splice(line, statementAt(lines, line).end - line);
}

/** Sets an option of the stack in a file without [stack_options]: where others are, or before the links. */
function addOptions(lines: string[], key: string, value: Value): void {
  const [top = { header: -1, end: 0 }] = sections(lines, "experiment");
  if (findKey(lines, top, "stack_options", "\\.") >= 0) return replaceKey(lines, top, `stack_options.${key}`, value);
  const inline = findKey(lines, top, "stack_options");
  if (inline < 0) return void lines.splice(top.end, 0, "[stack_options]", `${key} = ${toToml(value)}`, "");
  const entry = new RegExp(`\\b${key}\\s*=\\s*("[^"]*"|[^,}]*)`);
  const [line, set] = [lines[inline] ?? "", `${key} = ${toToml(value)}`];
  const end = line.indexOf("}");
  const before = line.slice(0, Math.max(end, 0)).trimEnd();
  if (entry.test(line)) lines[inline] = line.replace(entry, `${set} `);
  else if (end >= 0) lines[inline] = `${before}${before.endsWith("{") ? "" : ","} ${set} ${line.slice(end)}`;
}

/** Adds a [[flow]] at the end of the flows. */
export function addFlow(text: string, keys: Record<string, Value>): string {
  const lines = text.trimEnd().split("\n");
  const last = sections(lines, "flow", true).at(-1);
  const at = last ? contentEnd(lines, last) : lines.length;
  const added = Object.entries(keys).map(([key, value]) => `${key} = ${toToml(value)}`);
  lines.splice(at, 0, "", "[[flow]]", ...added);
  return `${lines.join("\n")}\n`;
}

/** Removes the `at`-th [[flow]] and its tables. */
export function removeFlow(text: string, at: number): string {
  const lines = text.split("\n");
  const span = sections(lines, "flow", true)[at];
  if (!span) return text;
  lines.splice(span.header, contentEnd(lines, span) - span.header);
  return lines.join("\n").replace(/\n{3,}/g, "\n\n");
}

/** Whether the `at`-th section has a key. */
export function hasKey(text: string, section: Section, at: number, key: string): boolean {
  const lines = text.split("\n");
  const span = sections(lines, section)[at];
  return !!span && findKey(lines, span, key) >= 0;
}

/** The text that a key of the `at`-th section is; empty if it has none or another value. */
export function textOf(text: string, section: Section, at: number, key: string): string {
  const lines = text.split("\n");
  const span = sections(lines, section)[at];
  const line = span ? findKey(lines, span, key) : -1;
  const [, , found = ""] = /=\s*(["'])(.*?)\1/.exec(lines[line] ?? "") ?? [];
  return found;
}

/** Whether the links or the flows are written in another way than as [[link]] and [[flow]]. */
export const isInline = (text: string): boolean => ["link", "flow"].some((key) => hasKey(text, "experiment", 0, key));
