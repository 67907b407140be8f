/** The page. */

import { useEffect, useRef, useState } from "preact/hooks";
import { Compare } from "./compare/compare";
import type { Shown } from "./compare/pair";
import type { Source } from "./engine/protocol";
import { Results } from "./results/results";
import { Editor } from "./scenario/editor";
import { Form } from "./scenario/form";
import { algorithmsOf, OwnCode } from "./scenario/own";
import { Traces } from "./scenario/traces";
import { presets } from "./scenario/presets";
import { codeOf, poolFor, refusalOf } from "./runs";
import { beginning, pack, TABS, unpack, viewOf, type Tab, type View } from "./share/link";
import { Share } from "./share/share";
import { isStale, useLab, type Lab } from "./state";
import { Status } from "./status";
import { Watch } from "./watch/watch";

type Theme = "auto" | "light" | "dark";

function useTheme(): [Theme, boolean, (theme: Theme) => void] {
  const query = matchMedia("(prefers-color-scheme: dark)");
  const [theme, setTheme] = useState<Theme>("auto");
  const [system, setSystem] = useState(query.matches);
  useEffect(() => {
    const changed = (): void => setSystem(query.matches);
    query.addEventListener("change", changed);
    return () => query.removeEventListener("change", changed);
  }, []);
  const dark = theme === "auto" ? system : theme === "dark";
  document.documentElement.dataset["theme"] = dark ? "dark" : "light";
  return [theme, dark, setTheme];
}

function Presets({ lab, choose }: { lab: Lab; choose: (toml: string) => void }) {
  const all = presets(lab.facts?.starter ?? "");
  const groups = [...new Set(all.map(({ group }) => group))];
  const at = all.findIndex(({ text }) => text === lab.source.toml);
  return (
    <label class="presets">
      <span>Scenario</span>
      <select
        value={at}
        onChange={(event) => {
          const preset = all[Number(event.currentTarget.value)];
          if (preset) choose(preset.text);
        }}
      >
        {at < 0 && <option value={-1}>{lab.valid?.experiment.title || "your own"}</option>}
        {groups.map((group) => (
          <optgroup key={group} label={group}>
            {all.map(({ name, group: of }, number) => of === group && (
              <option key={number} value={number}>
                {name}
              </option>
            ))}
          </optgroup>
        ))}
      </select>
    </label>
  );
}

/**
 * Keeps the scenario and what is shown in the address, so that reloading the page brings them back, and
 * opens another address. The function that it returns keeps the address before the next change for Back.
 */
function useAddress(source: Source, view: View, open: (fragment: string) => void): () => void {
  const step = useRef(false);
  const latest = useRef(open);
  latest.current = open;
  useEffect(() => {
    const keep = (fragment: string): void => {
      history[step.current ? "pushState" : "replaceState"](null, "", `#${fragment}`);
      step.current = false;
    };
    const later = setTimeout(() => void pack(source, view).then(keep), 300);
    return () => clearTimeout(later);
  }, [source, view]);
  useEffect(() => {
    const changed = ({ newURL }: HashChangeEvent): void => {
      step.current = false;
      // By now `keep` may have put the scenario before in the address.
      latest.current(new URL(newURL).hash);
    };
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  return () => void (step.current = true);
}

/** Arrow keys choose the next tab, as in any list of tabs. */
function Tabs({ tab, choose }: { tab: Tab; choose: (tab: Tab) => void }) {
  const names = Object.keys(TABS) as Tab[];
  const turn = (event: KeyboardEvent): void => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const next = by && names.at((names.indexOf(tab) + by) % names.length);
    if (!next) return;
    choose(next);
    document.getElementById(`tab-${next}`)?.focus();
  };
  return (
    <div class="tabs" role="tablist" aria-label="What is shown" onKeyDown={turn}>
      {names.map((name) => (
        <button key={name} type="button" role="tab" id={`tab-${name}`} tabIndex={tab === name ? 0 : -1} aria-selected={tab === name} aria-controls="outcome" onClick={() => choose(name)}>
          {TABS[name]}
        </button>
      ))}
    </div>
  );
}

interface Props {
  first: Source;
  view: View;
  embedded: boolean;
  complaint: string;
}

export function App({ first, view: opened, embedded, complaint: told }: Props) {
  const lab = useLab(first);
  const [theme, dark, setTheme] = useTheme();
  const [view, setView] = useState(opened);
  const [sharing, share] = useState(false);
  const [complaint, complain] = useState(told);
  const { source, runs } = lab;
  const { tab } = view;
  const show = (part: Partial<View>): void => setView((before) => ({ ...before, ...part }));
  const follow = (fragment: string): void => {
    const opened = (found: Source | null): void => {
      if (!found) return;
      lab.open(found);
      setView(viewOf(fragment));
      complain("");
    };
    unpack(fragment).then(opened, (error: Error) => complain(`${error.message}.`));
  };
  const close = (): void => {
    document.getElementById("share")?.focus(); // what has the focus goes
    share(false);
  };
  const step = useAddress(source, view, follow);
  const choose = (toml: string): void => {
    step();
    complain("");
    lab.open({ ...source, toml });
    show(beginning());
  };
  return (
    <div class={embedded ? "page embedded" : "page"}>
      <header>
        <h1>
          dumbbell <span class="soft">laboratory</span>
        </h1>
        <Presets lab={lab} choose={choose} />
        <div class="row">
          <button type="button" id="share" onClick={() => share(!sharing)} onKeyDown={(event) => event.key === "Escape" && share(false)} aria-expanded={sharing}>
            Share
          </button>
          <Colours theme={theme} change={setTheme} />
        </div>
      </header>
      {complaint && <p class="problems" role="alert">{complaint}</p>}
      {sharing && <Share source={source} view={view} checked={lab.valid} outputs={runs?.outputs ?? []} close={close} />}
      <main>
        <Scenario lab={lab} />
        <div class="outcome">
          <Tabs tab={tab} choose={(tab) => show({ tab })} />
          <div id="outcome" role="tabpanel" aria-labelledby={`tab-${tab}`}>
            {tab === "run" && runs && <Results {...runs} dark={dark} stale={isStale(lab)} view={view} show={show} />}
            {tab === "compare" && <Comparing lab={lab} dark={dark} view={view} show={show} />}
            {tab === "watch" && <Watching lab={lab} dark={dark} view={view} show={show} />}
          </div>
        </div>
        <File lab={lab} embedded={embedded} />
      </main>
      <footer class="soft small">
        The simulator of dumbbell {lab.facts?.version}, in this page: the same file gives the same numbers as <code>dumbbell run</code>.
        {tab === "run" && " Click into a panel, then Watch: the animation begins there."}
      </footer>
    </div>
  );
}

function Colours({ theme, change }: { theme: Theme; change: (theme: Theme) => void }) {
  return (
    <select aria-label="Colours" value={theme} onChange={(event) => change(event.currentTarget.value as Theme)}>
      <option value="auto">Auto</option>
      <option value="light">Light</option>
      <option value="dark">Dark</option>
    </select>
  );
}

/** The scenario as a form, and what the engine says of it. */
function Scenario({ lab }: { lab: Lab }) {
  const { source, problems, facts, setSource } = lab;
  const change = (toml: string): void => setSource({ ...source, toml });
  return (
    <div class="scenario">
      <Form text={source.toml} own={algorithmsOf(source.code)} checked={lab.latest} problems={problems} facts={facts} change={change} />
      <Status outcome={lab} trusted={lab.trusted} />
    </div>
  );
}

/** The scenario as a file, with the traces and the code that it names. */
function File({ lab, embedded }: { lab: Lab; embedded: boolean }) {
  const { source, problems, facts, setSource } = lab;
  const change = (toml: string): void => setSource({ ...source, toml });
  return (
    <details class="file" open={!embedded}>
      <summary>The file</summary>
      <Editor label="Experiment file (TOML)" text={source.toml} facts={facts} problems={problems} change={change} />
      <Traces source={source} change={setSource} />
      <OwnCode source={source} change={setSource} />
    </details>
  );
}

const WAITS = "The scenario has code of its own. Press Run to let it run.";

function Comparing({ lab, ...shown }: Shown & { lab: Lab }) {
  const { valid, of, facts } = lab;
  if (!valid || !of || !facts) return <p class="soft">The comparison follows when the file is valid.</p>;
  if (!lab.trusted) return <p class="soft">{WAITS}</p>;
  return <Compare lab={lab} checked={valid} source={of} algorithms={[...facts.algorithms, ...(lab.isOwn ? algorithmsOf(of.code) : [])]} {...shown} />;
}

/** The animation of the scenario whose results are shown. */
function Watching({ lab, dark, view, show }: Shown & { lab: Lab }) {
  const { valid: checked, of: source } = lab;
  if (!checked || !source) return <p class="soft">The animation follows when the file is valid.</p>;
  if (!lab.trusted) return <p class="soft">{WAITS}</p>;
  const refused = refusalOf(checked);
  if (refused) return <p class="soft">{refused}</p>;
  if (lab.waits) return <p class="soft">The animation follows when the scenario has been started: press Run.</p>;
  const { seeds } = checked.experiment;
  const [first = 1] = seeds;
  const chosen = seeds.find((seed) => seed === view.seed);
  const seed = chosen ?? first;
  const which = seeds.length > 1 ? `This is the run with seed ${seed}${chosen === undefined ? `, the first of ${seeds.length}` : ""}; Run has the choice. ` : "";
  return <Watch engine={() => poolFor(codeOf(source)).next()} checked={checked} source={source} seed={seed} which={which} from={view.at} moved={(at) => show({ at })} playing={!view.paused} play={(playing) => show({ paused: !playing })} dark={dark} />;
}
