/** Numbers as people read them. */

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

/** Numbers of a column with as many decimals as all of them need together. */
export function alike(values: number[], fewest = 0): (value: number) => string {
  const known = values.filter((value) => Number.isFinite(value) && value !== 0).map(Math.abs);
  const largest = Math.max(...known, 0);
  let decimals = fewest;
  if (!known.every(Number.isInteger) && largest < 1000) {
    decimals = Math.max(2 - Math.floor(Math.log10(largest)), 1, fewest);
  }
  const digits = { minimumFractionDigits: Math.min(decimals, 6), maximumFractionDigits: Math.min(decimals, 6) };
  return (value) => (Number.isFinite(value) ? value.toLocaleString("en", digits) : "–");
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
