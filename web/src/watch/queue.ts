/** When packets leave queues, from when they are at the far end and from how many wait at each sample. */

import { KIND, type Hops, type LinkSpec, type Scenario } from "../engine/protocol";
import { rowsBy } from "../results/rates";

/** The delays of a link, and from when on each is in force, s. */
const routesOf = ({ delay_ns, reroutes = [] }: LinkSpec): [from: number, delay: number][] =>
  [[0, delay_ns] as const, ...reroutes].map(([from, delay]) => [from / 1e9, delay / 1e9]);

/** The delay of a link at a time, s. */
export const delayAt = (link: LinkSpec, time: number): number => routesOf(link).findLast(([from]) => from <= time)?.[1] ?? 0;

/** By hop, when its packet leaves the queue; NaN on the way back. */
export function queueEnds(hops: Hops, scenario: Scenario): Float64Array {
  const { entered, left, link, size } = hops.columns;
  const inOrder = endsInOrder(hops);
  const specs = scenario.links.map((spec) => ({ ...spec, routes: routesOf(spec) }));
  return Float64Array.from(left, (time, hop) => {
    const spec = specs[link[hop] ?? 0];
    if (!spec || Number.isNaN(time)) return NaN;
    const { rate_bps, bucket_bytes, medium, jitter_ns = 0, reorder, routes } = spec;
    const isSteady = Boolean(rate_bps) && !bucket_bytes && !medium;
    const sending = isSteady ? (8 * (size[hop] ?? 0)) / (rate_bps ?? 1) : 0;
    const extra = isSteady ? (jitter_ns + (reorder?.delay_ns ?? 0)) / 1e9 : Infinity;
    const guess = Math.min(inOrder[hop] ?? Infinity, time);
    // On each route it left the link's near end within some time, which is a moment if no delay is random.
    let [best, miss] = [guess, Infinity];
    routes.forEach(([from, delay], at) => {
      const [first, last] = [Math.max(time - delay - extra, from), Math.min(time - delay, routes[at + 1]?.[0] ?? Infinity)];
      if (first > last) return;
      const end = Math.min(Math.max(guess, first - sending), last - sending);
      if (Math.abs(end - guess) < miss) [best, miss] = [end, Math.abs(end - guess)];
    });
    return Math.max(best, entered[hop] ?? 0);
  });
}

/** When packets would leave their queues if none overtook another: between samples as evenly as possible. */
function endsInOrder({ columns, links, from, until }: Hops): Float64Array {
  const { entered, left, link, kind } = columns;
  const ends = new Float64Array(entered.length).fill(Infinity);
  const isQueued = (hop: number): boolean => ((kind[hop] ?? 0) & (KIND.dropped | KIND.lost)) === 0 || (left[hop] ?? 0) > (entered[hop] ?? 0);
  const of = rowsBy({ link }, "link");
  for (const [number, rows] of rowsBy(links, "link")) {
    const queued = (of.get(number) ?? []).filter(isQueued);
    let [before, gone, come] = [from, 0, 0];
    for (const row of rows) {
      const t = links["t"]?.[row] ?? 0;
      if (t < from) continue;
      if (t > until) break;
      while (come < queued.length && (entered[queued[come] ?? 0] ?? 0) <= t) come += 1;
      const now = come - (links["queue_packets"]?.[row] ?? 0);
      for (let at = gone; at < now; at += 1) ends[queued[at] ?? 0] = before + ((t - before) * (at + 1 - gone)) / (now - gone);
      [before, gone] = [t, Math.max(gone, now)];
    }
  }
  return ends;
}
