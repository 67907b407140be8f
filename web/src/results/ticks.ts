/** Where axes have their marks. */

/** Steps of 1, 2 or 5 that cut a span into about `count` parts. */
export function ticks(low: number, high: number, count: number): number[] {
  const rough = (high - low) / count;
  if (!(rough > 0)) return [low];
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5, 10].find((of) => of * power >= rough) ?? 10);
  const first = Math.ceil(low / step - 1e-9);
  const last = Math.floor(high / step + 1e-9);
  return Array.from({ length: last - first + 1 }, (_, at) => Number(((first + at) * step).toPrecision(12)));
}

/** Of each power of ten. */
const STEPS = [[1, 2, 5], [1, 3], [1]];

/** At most about `count` marks of a logarithmic axis. */
export function logTicks(low: number, high: number, count: number): number[] {
  const first = Math.floor(Math.log10(low));
  const powers = Array.from({ length: Math.ceil(Math.log10(high)) - first + 1 }, (_, at) => first + at);
  const each = STEPS.map((steps) => powers.flatMap((power) => steps.map((step) => Number(`${step}e${power}`))).filter((at) => low <= at && at <= high));
  return each.find(({ length }) => length <= count) ?? each.at(-1) ?? [];
}
