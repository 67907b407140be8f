/** Numbers as people read them. */

import type { Estimate } from "./metrics";

/** Three significant digits, none lost in front of the point; from a million on with M or G. */
export function significant(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e9) return `${Number((value / 1e9).toPrecision(3))}G`;
  if (size >= 1e6) return `${Number((value / 1e6).toPrecision(3))}M`;
  if (size >= 1000) return Math.round(value).toLocaleString("en");
  return Number(value.toPrecision(3)).toString();
}

/** How many decimals show three digits of the largest number and something of the smallest, as in `dumbbell.display`. */
function decimalsOf(numbers: number[], fewest: number): number {
  const sizes = numbers.filter((value) => Number.isFinite(value) && value !== 0).map(Math.abs);
  if (sizes.every(Number.isInteger)) return 0;
  const [largest, smallest] = [Math.max(...sizes), Math.min(...sizes)];
  if (largest >= 1000) return fewest;
  let decimals = Math.max(2 - Math.floor(Math.log10(largest)), 1, fewest);
  while (decimals < 3 && isNothing(smallest, decimals)) decimals += 1;
  return Math.min(decimals, 6);
}

const isNothing = (value: number, decimals: number): boolean => Number(value.toFixed(decimals)) === 0;

function fixed(value: number, decimals: number): string {
  if (!Number.isFinite(value)) return "–";
  const digits = { minimumFractionDigits: decimals, maximumFractionDigits: decimals };
  return (isNothing(value, decimals) ? 0 : value).toLocaleString("en", digits).replace("-", "−"); // no sign for zero
}

/** Numbers of a column with as many decimals as all of them need together. */
export function alike(values: number[], fewest = 0): (value: number) => string {
  const decimals = decimalsOf(values, fewest);
  return (value) => fixed(value, decimals);
}

/** A mean and half of its interval as text; no text for an interval that it has not. */
export type Written = (estimate: Estimate) => { value: string; half: string };

/** The same for means; one whose interval would read ±0 has more decimals, and the interval with it. */
export function estimates(all: Estimate[], fewest = 0): Written {
  const common = decimalsOf(all.map(({ value }) => value), fewest);
  return ({ value, half }) => {
    if (!(half > 0 && half < Infinity)) return { value: fixed(value, common), half: "" };
    const decimals = isNothing(half, common) ? decimalsOf([value, half], common) : common;
    return { value: fixed(value, decimals), half: fixed(half, decimals) };
  };
}

export function moment(time: number): string {
  return `${Number(time.toFixed(3))} s`;
}

/** A large number in words: 25 million. */
export function many(count: number): string {
  if (count >= 1e9) return `${significant(count / 1e9)} billion`;
  if (count >= 1e6) return `${significant(count / 1e6)} million`;
  return Math.round(count).toLocaleString("en");
}
