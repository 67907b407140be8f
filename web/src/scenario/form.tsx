/** The form: what most scenarios differ in. It changes keys in the text of the file. */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Facts, LinkSpec, Problem, Valid } from "../engine/protocol";
import { styleOf } from "../results/looks";
import { dotOf } from "../results/panels";
import { groupsOf } from "../results/table";
import { baseRtt, pathsOf, pathRtt, rateOf } from "../runs";
import { rateText, seconds, short, timeText, withUnit } from "./quantities";
import { valuesOf } from "./schema";
import { addFlow, hasKey, isInline, removeFlow, setKey, textOf } from "./text";

interface Props {
  text: string;
  /** As the file was when it was valid last. */
  checked: Valid | null;
  problems: Problem[];
  facts: Facts | null;
  /** Algorithms of the user's code. */
  own: string[];
  change: (text: string) => void;
}

interface SliderProps {
  label: string;
  value: number;
  low: number;
  high: number;
  shown: string;
  /** Whether the slider also reaches 0, at its left end. */
  zero?: boolean;
  disabled?: boolean;
  title?: string;
  set: (value: number) => void;
  /** Takes a value as it is written beside the slider. */
  write: (text: string) => void;
  problems: Problem[];
  wrong: (problem: Problem) => boolean;
}

interface FieldProps {
  value: string | number;
  write: (text: string) => void;
  problems: Problem[];
  /** Whether a problem is one of this field's key. */
  wrong: (problem: Problem) => boolean;
  [attribute: string]: unknown;
}

/** Tells the problems of some keys of a link or flow. */
const problemOf = (kind: string, name: string, at: number, ...keys: string[]) => ({ key }: Problem): boolean =>
  key.startsWith(kind) && (key.includes(name) || key.includes(`[${at}]`)) && keys.some((one) => key.endsWith(`.${one}`));

/** An input. What is being typed stays when the page is drawn anew, and what was wrong until it is right. */
function Field({ value, write, problems, wrong, ...attributes }: FieldProps) {
  const [draft, setDraft] = useState<string | null>(null);
  /** What was written last, until the engine has found it right. */
  const sent = useRef<string | null>(null);
  const isWrong = sent.current !== null && problems.some(wrong);
  const send = (text: string): void => {
    if (text === sent.current) return;
    sent.current = text;
    setDraft(text);
    write(text);
  };
  useEffect(() => {
    if (sent.current === null || problems.some(wrong)) return;
    sent.current = null;
    setDraft(null);
  }, [problems]);
  return (
    <input
      {...attributes}
      value={draft ?? value}
      aria-invalid={isWrong}
      onInput={(event) => setDraft(event.currentTarget.value)}
      onChange={(event) => send(event.currentTarget.value.trim())}
      onKeyDown={(event) => event.key === "Enter" && draft !== null && send(draft.trim())}
      onBlur={() => draft !== null && send(draft.trim())}
    />
  );
}

const STEPS = 200;

/** A logarithmic slider. */
function Slider({ label, value, low, high, shown, zero, disabled, title, set, ...field }: SliderProps) {
  const ratio = Math.log(high / low);
  const at = value < low ? (zero ? -1 : 0) : (Math.log(Math.min(value, high) / low) / ratio) * STEPS;
  const move = (to: number): void => set(zero && to < 0 ? 0 : Number((low * Math.exp((Math.max(to, 0) / STEPS) * ratio)).toPrecision(2)));
  return (
    <label class="slider" title={title}>
      <span>{label}</span>
      <input
        type="range"
        min={zero ? -1 : 0}
        max={STEPS}
        step="any"
        value={at}
        disabled={disabled}
        aria-valuetext={shown}
        onInput={(event) => move(Number(event.currentTarget.value))}
        onKeyDown={(event) => {
          const by = { ArrowRight: 4, ArrowUp: 4, ArrowLeft: -4, ArrowDown: -4 }[event.key];
          if (!by || Number.isNaN(at)) return;
          event.preventDefault();
          move(Math.min(Math.max(at + by, zero ? -1 : 0), STEPS));
        }}
      />
      <Field type="text" class="value" aria-label={`${label}, written`} value={shown} disabled={disabled} {...field} />
    </label>
  );
}

/** AQMs as the literature writes them. */
const AQM_TITLES: Record<string, string> = { cake: "CAKE", codel: "CoDel", dualpi2: "DualPI2", fq_codel: "FQ-CoDel", fq_pie: "FQ-PIE", pie: "PIE", red: "RED", step: "step marking" };

/** Kinds of path as the literature writes them. */
const PATH_TITLES: Record<string, string> = { wifi: "Wi-Fi", lte: "LTE", "5g": "5G (millimetre waves)", cable: "cable modem", leo: "satellite (LEO)", policer: "policer" };
/** What templates set. A key that is written beside a template takes precedence. */
const OF_TEMPLATES = ["rate", "rates", "trace", "delay", "reroutes", "queue", "loss", "jitter", "burst", "medium"];

/** The file with a template in a link, or without: then with what the template set, as far as the form has it. */
function withTemplate(text: string, at: number, template: string, link: LinkSpec): string {
  const bare = [...OF_TEMPLATES, "template"].reduce((before, key) => setKey(before, "link", at, key, null), text);
  if (template) return setKey(bare, "link", at, "template", template);
  const rate = rateOf(link);
  const keys = { rate: rate ? rateText(rate) : "10 Mbit/s", delay: timeText(link.delay_ns / 1e9), queue: "1 BDP" };
  return Object.entries(keys).reduce((before, [key, value]) => setKey(before, "link", at, key, value), bare);
}

/** The longest base RTT of the flows that cross a link, by which a BDP is meant. */
function rttOf(checked: Valid, link: string): number {
  const crossing = checked.scenario.flows.flatMap(pathsOf).filter(({ path }) => path.includes(link));
  return Math.max(...crossing.map((path) => pathRtt(checked.scenario, path)), 1e-6);
}

/** The bytes that a queue holds, about; NaN if it has no limit. */
function bytesOf(queue: LinkSpec["queue"], rate: number): number {
  if (!queue) return NaN;
  if ("bytes" in queue) return queue.bytes;
  return "packets" in queue ? queue.packets * 1500 : (queue.ns / 1e9) * (rate / 8);
}

/** The file of a single link with another RTT than `rtt`, s. */
function withRtt(text: string, { scenario, names }: Valid, { delay_ns }: LinkSpec, rtt: number, value: number): string {
  const delay = delay_ns ? ((delay_ns / 1e9) * value) / rtt : value / 2;
  let next = setKey(text, "link", 0, "delay", timeText(delay));
  // A flow with an RTT of its own keeps its ratio to the others.
  scenario.flows.forEach((flow) => {
    const number = names.findIndex(([name]) => name === flow.name);
    if (number < 0 || !hasKey(text, "flow", number, "rtt")) return;
    next = setKey(next, "flow", number, "rtt", timeText((baseRtt(scenario, flow) * value) / rtt));
  });
  return next;
}

/** The menu of templates. */
function PathKind({ kind, facts, choose }: { kind: string; facts: Facts | null; choose: (kind: string) => void }) {
  return (
    <label class="choice">
      <span>Kind of path</span>
      <select value={kind} title={facts?.explanations[kind]} onChange={(event) => choose(event.currentTarget.value)}>
        <option value="">none</option>
        {valuesOf(facts?.schema ?? {}, "link.template").map((name) => (
          <option key={name} value={name}>
            {PATH_TITLES[name] ?? name}
          </option>
        ))}
      </select>
    </label>
  );
}

function LinkFields({ text, checked, problems, facts, change, at }: Props & { checked: Valid; at: number }) {
  const link = checked.scenario.links[at];
  const keys = checked.experiment.link[at];
  if (!link || !keys) return null;
  const set = (key: string, value: string | number | null) => change(setKey(text, "link", at, key, value));
  const rtt = rttOf(checked, link.name);
  const rate = rateOf(link);
  const kind = textOf(text, "link", at, "template").split("(")[0]?.trim() ?? "";
  const isRateDead = !!(link.rates || link.trace_ms);
  const isDelayDead = !!link.reroutes?.length;
  /** Why a slider is dead. */
  const dead = (varies: string): { shown: string; title: string } =>
    kind
      ? { shown: `set by ${kind}`, title: `The template sets it; write it into the template in the file: template = "${kind}(...)"` }
      : { shown: varies, title: "The file sets it, and it varies; write one value in its place in the file" };
  const bdp = (rate * rtt) / 8;
  const bytes = bytesOf(link.queue, rate);
  const alone = checked.scenario.links.length === 1;
  /** The RTT of a single link, the delay of one among several. */
  const setDelay = (value: number): void => (alone ? change(withRtt(text, checked, link, rtt, value)) : set("delay", timeText(value)));
  const writeDelay = (value: string): void => {
    const time = seconds(withUnit(value, "ms"));
    if (time > 0) setDelay(time);
    else set("delay", withUnit(value, "ms")); // the engine says what is wrong with it
  };
  const field = (...names: string[]) => ({ problems, wrong: problemOf("link", link.name, at, ...names) });
  const loss = typeof keys.loss === "number" ? keys.loss : link.loss_model || link.loss_steps.length ? NaN : link.loss;
  const isLossDead = Number.isNaN(loss);
  const [aqm = ""] = (keys.aqm ?? "").replace(/^none$/, "").split("(");
  const aqms = valuesOf(facts?.schema ?? {}, "link.aqm").filter((name) => name !== "none"); // tail drop
  return (
    <div class="fields">
      <PathKind kind={kind} facts={facts} choose={(name) => change(withTemplate(text, at, name, link))} />
      <Slider label="Rate" value={rate} low={1e6} high={1e9} shown={rate ? rateText(rate) : "no limit"} {...(isRateDead ? dead(link.rates ? "varies" : "trace") : {})} disabled={isRateDead} set={(value) => set("rate", rateText(value))} write={(value) => set("rate", withUnit(value, "Mbit/s"))} {...field("rate")} />
      {alone ? (
        <Slider label="RTT" value={rtt} low={1e-3} high={0.4} shown={timeText(rtt)} title="The round-trip time without queues" {...(isDelayDead ? dead("varies") : {})} disabled={isDelayDead} set={setDelay} write={writeDelay} problems={problems} wrong={({ key }) => /\.(delay|rtt)$/.test(key)} />
      ) : (
        <Slider label="Delay" value={link.delay_ns / 1e9} low={1e-4} high={0.2} shown={timeText(link.delay_ns / 1e9)} title="One way" {...(isDelayDead ? dead("varies") : {})} disabled={isDelayDead} set={setDelay} write={writeDelay} {...field("delay")} />
      )}
      <Slider
        label="Queue"
        value={Number.isNaN(bytes) ? 32 : bytes / bdp}
        low={0.1}
        high={32}
        shown={Number.isNaN(bytes) ? "unlimited" : `${short(bytes / bdp)} BDP`}
        title={!bdp ? "A link without a rate has no queue" : Number.isNaN(bytes) ? "" : `${short(bytes / 1e3)} kB; 1 BDP is ${short(bdp / 1e3)} kB`}
        disabled={!bdp}
        set={(value) => set("queue", `${short(value)} BDP`)}
        write={(value) => set("queue", withUnit(value, "BDP"))}
        {...field("queue")}
      />
      <Slider label="Loss" title="Of packets at random" value={loss} low={1e-6} high={0.1} zero shown={loss ? `${short(loss * 100)} %` : "none"} {...(isLossDead ? dead(link.loss_model ? "in bursts" : "varies") : {})} disabled={isLossDead} set={(value) => set("loss", value ? `${short(value * 100)} %` : null)} write={(value) => set("loss", value === "none" ? null : withUnit(value, "%"))} {...field("loss")} />
      <label class="choice">
        <span>Queue management</span>
        <select value={aqm} title={facts?.explanations[aqm]} onChange={(event) => set("aqm", event.currentTarget.value || null)}>
          <option value="">tail drop</option>
          {aqms.map((name) => (
            <option key={name} value={name}>
              {AQM_TITLES[name] ?? name}
            </option>
          ))}
        </select>
      </label>
    </div>
  );
}

/** Whether an algorithm needs what only a UDT receiver reports, as in crates/experiment. */
const needsUdt = (cc: string): boolean => ["udt", "ar-udt"].includes((cc.split("(")[0] ?? "").trim());

function FlowRow({ text, checked, problems, facts, own, change, at, colour }: Props & { checked: Valid; at: number; colour: string }) {
  const flow = checked.experiment.flow[at];
  if (!flow) return null;
  const set = (key: string, value: string | number | null) => change(setKey(text, "flow", at, key, value));
  const name = checked.names[at]?.[0]?.replace(/-1$/, flow.repeat > 1 ? "" : "-1") ?? "";
  const known = [...(facts?.algorithms ?? []), ...own];
  const field = (key: string) => ({ problems, wrong: problemOf("flow", flow.name ?? `flow-${at + 1}`, at, key) });
  const setCc = (cc: string): void => {
    const next = setKey(text, "flow", at, "cc", cc);
    // UDT was chosen for another algorithm than its own: it carries the next one too.
    const isKept = flow.transport === "udt" && !needsUdt(flow.cc);
    const transport = isKept || needsUdt(cc) ? "udt" : "tcp";
    if (transport === flow.transport) return change(next);
    const without = setKey(next, "flow", at, "transport_options", null);
    change(setKey(without, "flow", at, "transport", transport === "tcp" ? null : transport));
  };
  const remove = (): void => {
    document.getElementById("add-flow")?.focus(); // the button that has the focus goes
    change(removeFlow(text, at));
  };
  return (
    <tr>
      <th scope="row">
        <i class="dot" style={{ background: colour }} />
        {name}
      </th>
      <td>
        <select value={flow.cc} aria-label={`Algorithm of ${name}`} onChange={(event) => setCc(event.currentTarget.value)}>
          {!known.includes(flow.cc) && <option value={flow.cc}>{flow.cc}</option>}
          {known.map((cc) => (
            <option key={cc} value={cc}>
              {styleOf(cc).label}
            </option>
          ))}
        </select>
      </td>
      <td>
        <Field type="number" min="0" step="any" class="narrow" aria-label={`Start of ${name}, s`} value={Number(seconds(flow.start).toPrecision(6))} write={(start) => set("start", Number(start) ? withUnit(start, "s") : null)} {...field("start")} />
      </td>
      <td>
        <Field type="number" min="1" max="1000" class="narrow" aria-label={`Number of flows ${name}`} value={flow.repeat} write={(count) => set("repeat", Number(count || 1) === 1 ? null : Number(count))} {...field("repeat")} />
      </td>
      <td>
        <button type="button" class="quiet" aria-label={`Remove ${name}`} title="Remove" disabled={checked.experiment.flow.length < 2} onClick={remove}>
          ×
        </button>
      </td>
    </tr>
  );
}

function Flows(props: Props & { checked: Valid }) {
  const { checked } = props;
  const firsts = groupsOf(checked, true);
  return (
    <table class="flows">
      <thead>
        <tr>
          <th scope="col">Flow</th>
          <th scope="col">Algorithm</th>
          <th scope="col">Start (s)</th>
          <th scope="col">Number</th>
          <td />
        </tr>
      </thead>
      <tbody>
        {checked.experiment.flow.map((_, number) => (
          <FlowRow key={number} {...props} checked={checked} at={number} colour={dotOf(checked, firsts[number]?.numbers[0] ?? 0)} />
        ))}
      </tbody>
    </table>
  );
}

/** The keys of the whole experiment, and the button that adds a flow. */
function ExperimentFields({ text, checked, problems, facts, change }: Props & { checked: Valid }) {
  const field = (name: string) => ({ problems, wrong: ({ key }: Problem) => key.split(/[.[]/)[0] === name });
  const ecn = String(checked.experiment.stack_options["ecn"] ?? "off");
  const set = (key: string, value: string | number | null) => change(setKey(text, "experiment", 0, key, value));
  const add = (): void => {
    const taken = new Set(checked.names.flat());
    let number = checked.experiment.flow.length + 1;
    while (taken.has(`flow-${number}`)) number += 1;
    const last = checked.experiment.flow.at(-1);
    const path = checked.scenario.links.length > 1 && (last?.path ?? last?.paths?.[0]);
    change(addFlow(text, { name: `flow-${number}`, cc: "cubic", ...(path && { path }) }));
  };
  return (
    <div class="row">
      <button type="button" id="add-flow" onClick={add}>
        Add a flow
      </button>
      <label>
        Duration{" "}
        <Field type="number" min="0.1" step="any" class="narrow" value={Number(seconds(checked.experiment.duration).toPrecision(6))} write={(duration) => duration && set("duration", withUnit(duration, "s"))} {...field("duration")} />{" "}
        s
      </label>
      <label>
        Seeds{" "}
        <Field type="number" min="1" max="50" class="narrow" value={checked.experiment.seeds.length} write={(count) => count && set("seeds", Number(count))} {...field("seeds")} />
      </label>
      <label>
        ECN{" "}
        <select value={ecn} onChange={(event) => change(setKey(text, "stack_options", 0, "ecn", event.currentTarget.value))}>
          {valuesOf(facts?.schema ?? {}, "stack_options.ecn").map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      </label>
    </div>
  );
}

export function Form(props: Props) {
  const { text, checked } = props;
  /** The name of the link that the user has chosen. */
  const [chosen, choose] = useState("");
  const all = checked?.scenario.links ?? [];
  /** The bottleneck, while the links are the same ones: a slider that changes a rate shows the same link. */
  const slowest = useMemo(() => {
    const rates = all.map((link) => rateOf(link) || Infinity);
    return Math.max(rates.indexOf(Math.min(...rates)), 0);
  }, [all.map(({ name }) => name).join("\n")]);
  if (!checked) return <p class="soft">The form follows when the file is valid.</p>;
  if (isInline(text)) return <p class="soft">The form changes links and flows that begin with [[link]] and [[flow]]; this file writes them in another way.</p>;
  const { links } = checked.scenario;
  const found = links.findIndex(({ name }) => name === chosen);
  const at = found < 0 ? slowest : found;
  return (
    <div class="form">
      {links.length > 1 && (
        <label class="choice">
          <span>Link</span>
          <select value={at} onChange={(event) => choose(links[Number(event.currentTarget.value)]?.name ?? "")}>
            {links.map(({ name }, number) => (
              <option key={name} value={number}>
                {name}
              </option>
            ))}
          </select>
        </label>
      )}
      <LinkFields {...props} checked={checked} at={at} />
      <Flows {...props} checked={checked} />
      <ExperimentFields {...props} checked={checked} />
    </div>
  );
}
