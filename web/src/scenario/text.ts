/** Changes keys in the text of an experiment file; comments and order stay. */

export type Section = "experiment" | "link" | "flow" | "stack_options";

interface Span {
  /** The line of the header, -1 for the keys before any header. */
  header: number;
  /** One past the last line. */
  end: number;
}

const HEADER = /^\s*\[/;

/** Where the sections of this name are, in order. */
function sections(lines: string[], section: Section): Span[] {
  const first = lines.findIndex((line) => HEADER.test(line));
  if (section === "experiment") return [{ header: -1, end: first < 0 ? lines.length : first }];
  const name = section === "stack_options" ? /^\s*\[\s*stack_options\s*\]/ : new RegExp(`^\\s*\\[\\[\\s*${section}\\s*\\]\\]`);
  const found: Span[] = [];
  lines.forEach((line, header) => {
    if (!name.test(line)) return;
    const next = lines.findIndex((other, at) => at > header && HEADER.test(other));
    found.push({ header, end: next < 0 ? lines.length : next });
  });
  return found;
}

/** One past the last line of a section that is neither empty nor a comment before the next one. */
function contentEnd(lines: string[], span: Span): number {
  let end = span.end;
  while (end > span.header + 1 && /^\s*(#.*)?$/.test(lines[end - 1] ?? "")) end -= 1;
  return end;
}

function findKey(lines: string[], span: Span, key: string): number {
  const is = new RegExp(`^\\s*(${key}|"${key}")\\s*=`);
  for (let at = span.header + 1; at < span.end; at += 1) if (is.test(lines[at] ?? "")) return at;
  return -1;
}

/** The comment after a value, with the blanks before it. */
function comment(rest: string): string {
  let quote = "";
  for (let at = 0; at < rest.length; at += 1) {
    const char = rest[at] ?? "";
    if (quote) {
      if (char === quote) quote = "";
    } else if (char === '"' || char === "'") {
      quote = char;
    } else if (char === "#") {
      let begin = at;
      while (begin > 0 && /\s/.test(rest[begin - 1] ?? "")) begin -= 1;
      return rest.slice(begin);
    }
  }
  return "";
}

/** A value as TOML. */
export function toToml(value: string | number | boolean): string {
  return typeof value === "string" ? JSON.stringify(value) : String(value);
}

/**
 * Sets a key of the `at`-th section (from 0), or removes it with `null`. A comment that follows the
 * old value stays unless it would no longer be true: comments with a number go.
 */
export function setKey(
  text: string,
  section: Section,
  at: number,
  key: string,
  value: string | number | boolean | null,
): string {
  const lines = text.split("\n");
  const span = sections(lines, section)[at];
  if (!span) {
    if (value === null || section === "link" || section === "flow") return text;
    return addOptions(lines, key, value);
  }
  const line = findKey(lines, span, key);
  if (line >= 0) {
    if (value === null) {
      lines.splice(line, 1);
    } else {
      const [head = "", ...rest] = (lines[line] ?? "").split("=");
      const note = comment(rest.join("="));
      lines[line] = `${head}= ${toToml(value)}${/\d/.test(note) ? "" : note}`;
    }
  } else if (value !== null) {
    lines.splice(contentEnd(lines, span), 0, `${key} = ${toToml(value)}`);
  }
  return lines.join("\n");
}

/** Adds a table [stack_options] before the links. */
function addOptions(lines: string[], key: string, value: string | number | boolean): string {
  const inline = lines.findIndex((line) => /^\s*stack_options\s*=\s*\{/.test(line));
  if (inline >= 0) {
    const entry = new RegExp(`\\b${key}\\s*=\\s*("[^"]*"|[^,}]*)`);
    const [line, set] = [lines[inline] ?? "", `${key} = ${toToml(value)}`];
    lines[inline] = entry.test(line) ? line.replace(entry, `${set} `) : line.replace(/\s*\}/, `, ${set} }`);
    return lines.join("\n");
  }
  const first = lines.findIndex((line) => HEADER.test(line));
  lines.splice(first < 0 ? lines.length : first, 0, "[stack_options]", `${key} = ${toToml(value)}`, "");
  return lines.join("\n");
}

/** Adds a [[flow]] at the end of the flows. */
export function addFlow(text: string, keys: Record<string, string | number>): string {
  const lines = text.trimEnd().split("\n");
  const last = sections(lines, "flow").at(-1);
  const at = last ? contentEnd(lines, last) : lines.length;
  const added = Object.entries(keys).map(([key, value]) => `${key} = ${toToml(value)}`);
  lines.splice(at, 0, "", "[[flow]]", ...added);
  return `${lines.join("\n")}\n`;
}

/** Removes the `at`-th [[flow]]. */
export function removeFlow(text: string, at: number): string {
  const lines = text.split("\n");
  const span = sections(lines, "flow")[at];
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
