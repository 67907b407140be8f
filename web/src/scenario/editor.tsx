/** The text of a file, with completion, explanations and the engine's errors. */

import { autocompletion, closeBrackets, type Completion, type CompletionContext } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { HighlightStyle, StreamLanguage, syntaxHighlighting } from "@codemirror/language";
import { toml } from "@codemirror/legacy-modes/mode/toml";
import { lintGutter, setDiagnostics, type Diagnostic } from "@codemirror/lint";
import { Compartment, EditorState, type Extension } from "@codemirror/state";
import { EditorView, highlightActiveLine, hoverTooltip, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import type { Facts, Problem } from "../engine/protocol";
import { valuesOf } from "./schema";

const highlight = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: "var(--link)" },
  { tag: tags.string, color: "var(--good)" },
  { tag: [tags.number, tags.bool, tags.atom], color: "var(--amber)" },
  { tag: tags.comment, color: "var(--soft)", fontStyle: "italic" },
  { tag: [tags.keyword, tags.definitionKeyword], color: "var(--bad)" },
]);

const theme = EditorView.theme({
  "&": { fontSize: "0.84rem", backgroundColor: "transparent" },
  ".cm-content": { fontFamily: "var(--mono)", caretColor: "var(--ink)", padding: "0.5rem 0" },
  ".cm-gutters": { backgroundColor: "transparent", color: "var(--soft)", border: "0" },
  ".cm-activeLine": { backgroundColor: "color-mix(in srgb, var(--link) 7%, transparent)" },
  "&.cm-focused .cm-selectionBackground, .cm-selectionBackground": {
    backgroundColor: "color-mix(in srgb, var(--link) 25%, transparent) !important",
  },
  ".cm-cursor": { borderLeftColor: "var(--ink)" },
  ".cm-tooltip": { backgroundColor: "var(--paper)", color: "var(--ink)", border: "1px solid var(--line)", maxWidth: "32rem" },
  ".cm-tooltip pre": { margin: "0.4rem 0.6rem", whiteSpace: "pre-wrap", font: "0.8rem/1.45 var(--mono)" },
  ".cm-tooltip-autocomplete ul li[aria-selected]": { backgroundColor: "var(--link)", color: "var(--paper)" },
});

/** The table around a position: experiment, link or flow. */
function tableAt(state: EditorState, line: number): string {
  for (let at = line; at >= 1; at -= 1) {
    const found = /^\s*\[\[?\s*([\w.]+)/.exec(state.doc.line(at).text);
    if (found) return found[1] ?? "experiment";
  }
  return "experiment";
}

const topicOf = (table: string, key: string): string =>
  table === "experiment" ? key : table.endsWith("stack_options") ? `stack.${key}` : `${table}.${key}`;

function complete(facts: Facts, context: CompletionContext) {
  const line = context.state.doc.lineAt(context.pos);
  const before = line.text.slice(0, context.pos - line.from);
  const table = tableAt(context.state, line.number);
  const value = /^\s*(\w+)\s*=\s*"([\w+-]*)$/.exec(before);
  if (value) {
    const known = valuesOf(facts.schema, table === "experiment" ? (value[1] ?? "") : `${table}.${value[1] ?? ""}`);
    return known.length ? { from: context.pos - (value[2] ?? "").length, options: known.map((label) => ({ label })) } : null;
  }
  const word = /^\s*(\w*)$/.exec(before);
  if (!word || (!word[1] && !context.explicit)) return null;
  const prefix = topicOf(table, "");
  const options = facts.topics
    .filter((topic) => (prefix ? topic.startsWith(prefix) : facts.explanations[topic]?.startsWith(`${topic}: `) && !/[.]/.test(topic)))
    .map((topic): Completion => ({ label: topic.slice(prefix.length), info: facts.explanations[topic] ?? "", apply: `${topic.slice(prefix.length)} = ` }));
  return { from: context.pos - (word[1] ?? "").length, options };
}

function hover(facts: Facts): Extension {
  return hoverTooltip((view, pos) => {
    const line = view.state.doc.lineAt(pos);
    const [, blank = "", key = ""] = /^(\s*)(\w+)\s*=/.exec(line.text) ?? [];
    const inKey = key && pos - line.from <= blank.length + key.length;
    const word = /[\w+-]+/g;
    let text = inKey ? facts.explanations[topicOf(tableAt(view.state, line.number), key)] : undefined;
    for (const found of inKey ? [] : line.text.matchAll(word)) {
      if (found.index <= pos - line.from && pos - line.from <= found.index + found[0].length) text ??= facts.explanations[found[0]];
    }
    if (!text) return null;
    return {
      pos: line.from,
      create: () => {
        const dom = document.createElement("pre");
        dom.textContent = text ?? "";
        return { dom };
      },
    };
  });
}

function diagnostics(state: EditorState, problems: Problem[]): Diagnostic[] {
  return problems.map(({ line, column, key, problem }) => {
    const at = state.doc.line(Math.min(Math.max(line, 1), state.doc.lines));
    const from = Math.min(at.from + Math.max(column - 1, 0), at.to);
    return { from, to: at.to, severity: "error", message: key ? `${key}: ${problem}` : problem };
  });
}

/** Puts a text in; only what differs is replaced, so that the cursor stays. */
function replaceText(editor: EditorView, text: string): void {
  const now = editor.state.doc.toString();
  if (now === text) return;
  let [begin, end] = [0, 0];
  while (begin < Math.min(now.length, text.length) && now[begin] === text[begin]) begin += 1;
  while (end < Math.min(now.length, text.length) - begin && now.at(-1 - end) === text.at(-1 - end)) end += 1;
  editor.dispatch({
    changes: { from: begin, to: now.length - end, insert: text.slice(begin, text.length - end) },
    userEvent: "lab",
  });
}

interface Props {
  text: string;
  language?: "toml" | "javascript";
  extensions?: Extension;
  label: string;
  facts: Facts | null;
  problems: Problem[];
  change: (text: string) => void;
}

export function Editor({ text, label, facts, problems, change, extensions }: Props) {
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const help = useRef(new Compartment());
  const latest = useRef(change);
  latest.current = change;

  useEffect(() => {
    const state = EditorState.create({
      doc: text,
      extensions: [
        lineNumbers(),
        history(),
        closeBrackets(),
        highlightActiveLine(),
        lintGutter(),
        extensions ?? StreamLanguage.define(toml),
        syntaxHighlighting(highlight),
        theme,
        EditorView.contentAttributes.of({ "aria-label": label }),
        keymap.of([...defaultKeymap, ...historyKeymap]),
        help.current.of([]),
        EditorView.updateListener.of((update) => {
          if (update.docChanged && !update.transactions.some((one) => one.isUserEvent("lab"))) {
            latest.current(update.state.doc.toString());
          }
        }),
      ],
    });
    view.current = new EditorView({ state, parent: host.current as HTMLElement });
    view.current.scrollDOM.tabIndex = 0; // long lines scroll by keyboard too
    return () => view.current?.destroy();
  }, []);

  // Before the next key: an effect after it would put back the text without that key.
  useLayoutEffect(() => {
    if (view.current) replaceText(view.current, text);
  }, [text]);

  useEffect(() => {
    if (!facts || extensions) return;
    const helped = [autocompletion({ override: [(context) => complete(facts, context)] }), hover(facts)];
    view.current?.dispatch({ effects: help.current.reconfigure(helped) });
  }, [facts]);

  useEffect(() => {
    const editor = view.current;
    if (editor) editor.dispatch(setDiagnostics(editor.state, diagnostics(editor.state, problems)));
  }, [problems]);

  return <div class="editor" ref={host} />;
}
