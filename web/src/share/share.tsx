/** What can be taken away: the link, the file, the samples, the command that does the same. */

import { useEffect, useRef, useState } from "preact/hooks";
import type { Output, Source, Valid } from "../engine/protocol";
import { csv, save } from "../results/export";
import { MOST_BYTES, pack, type View } from "./link";

interface Props {
  source: Source;
  view: View;
  checked: Valid | null;
  outputs: Output[];
  close: () => void;
}

/** The name of a file for a title. */
export function fileName(title: string): string {
  const name = title.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-+|-+$/g, "").slice(0, 40);
  return name || "experiment";
}

function Copy({ label, text, multiline }: { label: string; text: string; multiline?: boolean }) {
  const [done, setDone] = useState("");
  const host = useRef<HTMLDivElement>(null);
  const select = (): void => host.current?.querySelector<HTMLInputElement>("input, textarea")?.select();
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text);
      setDone("Copied");
    } catch {
      select(); // the browser lets no page copy, or not this one
      setDone("Selected");
    }
    setTimeout(() => setDone(""), 1500);
  };
  return (
    <div class="copy" ref={host}>
      <label>
        <span>{label}</span>
        {multiline ? <textarea readOnly rows={3} value={text} onFocus={select} /> : <input readOnly value={text} onFocus={select} />}
      </label>
      <button type="button" onClick={() => void copy()}>
        {done || "Copy"}
      </button>
    </div>
  );
}

/** Addresses that only this computer opens. */
const LOCAL = /^(file:|https?:\/\/(localhost|127\.0\.0\.1|\[::1\])[:/])/;

function Links({ fragment, title, hasCode }: { fragment: string; title: string; hasCode: boolean }) {
  const link = `${location.href.split(/[?#]/)[0]}#${fragment}`;
  const frame = `<iframe src="${link.replace("#", "?embed#")}" width="100%" height="720" style="border:0" title="${title.replaceAll('"', "&quot;") || "dumbbell laboratory"}"></iframe>`;
  return (
    <>
      <p class="soft">
        The link holds the whole scenario, {link.length.toLocaleString("en")} characters. Nothing is sent to a server: what follows # stays in
        the browser. {LOCAL.test(location.href) && "Its address is of this computer, so that nobody else can open it; the command runs anywhere. "}
        {hasCode && "It holds your own code too; who opens it must start it."}
      </p>
      <Copy label="Link" text={link} />
      <Copy label="For notes" text={`[${title.replace(/[[\]]/g, "") || "The scenario"}](lab.html#${fragment})`} />
      <Copy label="Command" text={`dumbbell run '${link}'`} />
      <Copy label="For a page" text={frame} multiline />
    </>
  );
}

export function Share({ source, view, checked, outputs, close }: Props) {
  const [fragment, setFragment] = useState<string | null>(null);
  useEffect(() => void pack(source, view).then(setFragment), [source, view]);
  const [failure, fail] = useState("");
  const title = checked?.experiment.title ?? "";
  const name = fileName(title);
  const saveSamples = (): void => {
    fail("");
    try {
      if (checked) save(`${name}.csv`, csv(checked, outputs), "text/csv");
    } catch (error) {
      fail(`The samples were not saved: ${error instanceof Error ? error.message : String(error)}.`);
    }
  };
  return (
    <section class="share" aria-label="Share" onKeyDown={(event) => event.key === "Escape" && close()}>
      <div class="row">
        <h2>Share</h2>
        <button type="button" class="quiet" onClick={close}>
          Close
        </button>
      </div>
      {fragment === "" ? (
        <p class="problems" role="alert">
          The scenario has more than {MOST_BYTES / 1e6} MB with its code and traces, the most that a link holds: save the file and keep those beside it.
        </p>
      ) : (
        <Links fragment={fragment ?? ""} title={title} hasCode={source.code.trim() !== ""} />
      )}
      <div class="row">
        <button type="button" onClick={() => save(`${name}.toml`, source.toml, "application/toml")}>
          Save the file (TOML)
        </button>
        <button type="button" disabled={!checked || !outputs.length} onClick={saveSamples}>
          Save the samples (CSV)
        </button>
      </div>
      {failure && <p class="problems" role="alert">{failure}</p>}
      <p class="soft small">For notes: a link in Markdown to a lab.html beside them, which dumbbell lab --file lab.html writes. Each figure is saved as SVG or PNG by the buttons above it.</p>
    </section>
  );
}
