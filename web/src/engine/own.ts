/**
 * Algorithms in JavaScript: the base classes, and how the engine calls objects of the user's classes.
 * The names are those of `dumbbell.cc` in Python. `crates/wasm/src/own.rs` has the other side.
 */

const STATES = ["open", "disorder", "cwr", "recovery", "loss"];
const SIGNALS = ["loss", "ecn", "timeout", "nak"];

type Facts = Float64Array;
type Named = Record<string, unknown>;

const known = (value: number | undefined): number | null => (value === undefined || Number.isNaN(value) ? null : value);

/** What every algorithm has. */
class Algorithm {
  static uses_prr = true;
  inspect(): Record<string, number> {
    return {};
  }
}

class WindowRule extends Algorithm {
  static slow_start = "standard";
  observe(_path: Named, _ack: Named): void {}
  on_timeout(): void {}
  on_undo(): void {}
}

/** What sets a window and a pacing rate. */
class Controller extends Algorithm {
  cwnd: number;
  ssthresh = Infinity;
  pacing_rate: number | null = null;
  constructor(init: { initial_window: number }) {
    super();
    this.cwnd = init.initial_window;
  }
}

class RoundControl extends Controller {
  on_congestion(_path: Named, _event: Named): void {}
}

class CongestionControl extends Controller {
  timer: number | null = null;
  on_established(_path: Named): void {}
  on_sent(_path: Named, _sent: Named): void {}
  on_timer(_path: Named): void {}
  on_spurious_loss(_path: Named): void {}
}

type Call = (...facts: unknown[]) => unknown;
interface Entry {
  object: Algorithm & Named;
  name: string;
  path: Named;
  ack: Named;
  names: string[];
  values: number[];
}

const objects: Entry[] = [];

/** The places of facts: those of an event, the arguments of a rule, the other subflows (`facts.rs`). */
const [EVENT, ARGUMENTS, SIBLINGS, SUBFLOW] = [13, 34, 36, 6];

function siblingsOf(facts: Facts): Named[] {
  const found: Named[] = [];
  for (let at = SIBLINGS; at < facts.length; at += SUBFLOW) {
    const [cwnd, srtt, last, previous, slow_start, active] = facts.subarray(at);
    found.push({ cwnd, srtt, delivered_between_losses: [last, previous], slow_start: slow_start === 1, active: active === 1 });
  }
  return found;
}

function fillPath(path: Named, facts: Facts): Named {
  const [now, mss, srtt, min_rtt, in_flight, delivered, lost, marked, state = 0, limited, next_seq, una, pacing] = facts;
  const ca_state = STATES[state];
  const reducing = ca_state === "cwr" || ca_state === "recovery";
  return Object.assign(path, {
    ...{ now, mss, srtt: known(srtt), min_rtt: known(min_rtt), in_flight, delivered, lost, marked, ca_state, reducing },
    ...{ cwnd_limited: limited === 1, next_seq, una, pacing_rate: known(pacing), siblings: siblingsOf(facts) },
  });
}

function stateOf([sent_at, delivered, in_flight, app_limited]: Facts): Named | null {
  return known(sent_at) === null ? null : { sent_at, delivered, in_flight, app_limited: app_limited === 1 };
}

function fillAck(ack: Named, facts: Facts): Named {
  const [delivered, acked, lost, marked, rtt, prior_in_flight, rate, ...more] = facts.subarray(EVENT);
  const [of, interval, lostSince, markedSince] = more;
  const send_state = stateOf(facts.subarray(EVENT + 11));
  const sample = known(rate) === null ? null : { delivered: of, interval, rate, send_state, lost: lostSince, marked: markedSince };
  const [advanced, ...report] = facts.subarray(EVENT + 15);
  const [rttOf, rtt_var, arrival_rate, capacity, window] = report;
  const udt = known(advanced) === null ? null : { advanced, rtt: rttOf, rtt_var, arrival_rate, capacity, window };
  return Object.assign(ack, { delivered, acked, lost, marked, rtt: known(rtt), prior_in_flight, rate: sample, udt });
}

function eventOf(facts: Facts): Named {
  const [signal = 0, new_episode, packets, seq] = facts.subarray(EVENT);
  return { signal: SIGNALS[signal], new_episode: new_episode === 1, packets, seq, send_state: stateOf(facts.subarray(EVENT + 4)) };
}

function sentOf(facts: Facts): Named {
  const [seq, retransmission, from_idle, app_limited] = facts.subarray(EVENT);
  return { seq, retransmission: retransmission === 1, from_idle: from_idle === 1, app_limited: app_limited === 1 };
}

function roundOf(facts: Facts): Named {
  const [number, start, duration, delivered, lost, marked, min, mean, max, rate, max_rate, app_limited] = facts.subarray(EVENT);
  const rtts = { rtt_min: known(min), rtt_mean: known(mean), rtt_max: known(max) };
  return { number, start, duration, delivered, lost, marked, ...rtts, rate, max_rate, app_limited: app_limited === 1 };
}

function number(value: unknown, what: string, method: string, isValid: (value: number) => boolean, valid: string): number {
  if (typeof value !== "number" || !isValid(value)) throw new Error(`${what} is ${String(value)} after ${method}; ${valid}`);
  return value;
}

/** Writes the control parameters of an object into the first places, of which the first has the time. */
function writeControl(object: Named, facts: Facts, method: string): void {
  const after = method === "on_timer" ? Number(facts[0]) : -1;
  const window = "a window is a finite number of packets, 1 or more";
  facts[0] = number(object["cwnd"], "cwnd", method, (value) => value >= 1 && value < Infinity, window);
  facts[1] = number(object["ssthresh"], "ssthresh", method, (value) => value >= 1, "a threshold is 1 packet or more, or Infinity");
  const [rate, timer] = [object["pacing_rate"], object["timer"] ?? null];
  const pacing = "a pacing rate is a finite number of bytes/s above 0, or null";
  facts[2] = rate === null ? NaN : number(rate, "pacing_rate", method, (value) => value > 0 && value < Infinity, pacing);
  const time = "a timer is null or a time in s; after on_timer, later than the current time";
  facts[3] = timer === null ? NaN : number(timer, "timer", method, (value) => value > after && value < 1e9, time);
}

const METHODS = [
  ...["on_ack", "on_congestion", "on_established", "on_sent", "on_spurious_loss", "on_timer"],
  ...["increase", "decrease", "observe", "on_timeout", "on_undo", "inspect", "on_round"],
];

function invoke({ object, path, ack, values }: Entry, method: string, facts: Facts): void {
  const call = object[method] as Call;
  if (typeof call !== "function") throw new Error(`the class has no method ${method}`);
  switch (method) {
    case "increase": {
      const [cwnd = 0, acked = 0] = facts.subarray(ARGUMENTS);
      const grown = call.call(object, cwnd, acked, fillPath(path, facts), fillAck(ack, facts));
      const valid = "an increase is finite and leaves a window of 1 packet or more";
      facts[0] = number(grown, "the increase", method, (value) => cwnd + value >= 1 && cwnd + value <= 1e15, valid);
      return;
    }
    case "decrease": {
      const cwnd = facts[ARGUMENTS];
      const window = call.call(object, cwnd, fillPath(path, facts), eventOf(facts));
      const valid = "a window after a decrease is a finite number of packets, 0 or more";
      facts[0] = number(window, "the new window", method, (value) => value >= 0 && value < Infinity, valid);
      return;
    }
    case "observe":
      call.call(object, fillPath(path, facts), fillAck(ack, facts));
      return;
    case "on_timeout":
    case "on_undo":
      call.call(object);
      return;
    case "inspect":
      facts.set(values);
      return;
    case "on_timer":
      object["timer"] = null;
      call.call(object, fillPath(path, facts));
      break;
    case "on_ack":
      call.call(object, fillPath(path, facts), fillAck(ack, facts));
      break;
    case "on_round":
      call.call(object, fillPath(path, facts), roundOf(facts));
      break;
    case "on_congestion":
      call.call(object, fillPath(path, facts), eventOf(facts));
      break;
    case "on_sent":
      call.call(object, fillPath(path, facts), sentOf(facts));
      break;
    default:
      call.call(object, fillPath(path, facts));
  }
  writeControl(object, facts, method);
}

/** The first line of a user's code in the worker's script, and how many it has. */
let code = { first: 0, count: 0 };

/** An error as text for the engine, with its line in the user's code. */
function told(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  for (const found of (error.stack ?? "").matchAll(/:(\d+):\d+\)?$/gm)) {
    const line = Number(found[1]) - code.first + 1;
    if (line >= 1 && line <= code.count) return `line ${line}: ${error.message}`;
  }
  return error.message;
}

function guarded<A extends unknown[], R>(f: (...args: A) => R): (...args: A) => R {
  return (...args) => {
    try {
      return f(...args);
    } catch (error) {
      throw told(error);
    }
  };
}

function entry(id: number): Entry {
  const found = objects[id];
  if (!found) throw new Error("there is no such object");
  return found;
}

type Classes = Record<string, (new (init: Named, options: Named) => Algorithm & Named) | undefined>;

function make(classes: Classes, name: string, options: string, facts: Facts): number {
  const Class = classes[name];
  if (!Class) throw new Error(`there is no class ${name}; there is ${Object.keys(classes).join(", ") || "none"}`);
  const [now, mss, initial_window, seed] = facts;
  const given = (JSON.parse(options) as [string, string][]).map(([key, value]) => [key, value === "" || Number.isNaN(Number(value)) ? value : Number(value)]);
  const object = new Class({ now, mss, initial_window, seed }, Object.fromEntries(given) as Named);
  if (object instanceof Controller) writeControl(object as unknown as Named, facts, "its constructor");
  else if (!(object instanceof WindowRule)) throw new Error(`${name} extends none of WindowRule, RoundControl and CongestionControl`);
  objects.push({ object, name, path: {}, ack: {}, names: [], values: [] });
  return objects.length - 1;
}

/** Puts the base classes, and what the engine calls, where the user's code and the engine find them. */
export function provide(): void {
  Object.assign(globalThis, { WindowRule, RoundControl, CongestionControl });
}

/** Takes the user's classes; the code stands in the worker's script from a line on. */
export function adopt(classes: Classes, first: number, count: number): void {
  code = { first, count };
  const own = {
    make: guarded((name: string, options: string, facts: Facts) => make(classes, name, options, facts)),
    call: guarded((id: number, method: number, facts: Facts) => invoke(entry(id), METHODS[method] ?? "", facts)),
    copy: guarded((id: number) => {
      const { object, ...rest } = entry(id);
      const twin = Object.assign(Object.create(Object.getPrototypeOf(object) as object) as Algorithm & Named, structuredClone({ ...object }));
      objects.push({ ...rest, object: twin, path: {}, ack: {} });
      return objects.length - 1;
    }),
    names: guarded((id: number) => {
      const one = entry(id);
      const shown = Object.entries(one.object.inspect()).slice(0, 64);
      one.names = shown.map(([name]) => name);
      one.values = shown.map(([name, value]) => number(value, name, "inspect", () => true, "inspect returns names and numbers"));
      return one.names;
    }),
    tier: (id: number) => (entry(id).object instanceof WindowRule ? "rule" : entry(id).object instanceof RoundControl ? "round" : "ack"),
    slow_start: (id: number) => String((entry(id).object.constructor as typeof WindowRule).slow_start),
    uses_prr: (id: number) => (entry(id).object.constructor as typeof Algorithm).uses_prr,
  };
  Object.assign(globalThis, { own });
}

/** Forgets the objects of earlier runs. */
export function forget(): void {
  objects.length = 0;
}
