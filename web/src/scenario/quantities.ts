/** Quantities as experiment files have them. */

/** A number with three significant digits, without an exponent. */
export function short(value: number): string {
  return Number(value.toPrecision(3)).toString();
}

export function rateText(bps: number): string {
  if (bps >= 1e9) return `${short(bps / 1e9)} Gbit/s`;
  return bps >= 1e6 ? `${short(bps / 1e6)} Mbit/s` : `${short(bps / 1e3)} kbit/s`;
}

export function timeText(seconds: number): string {
  if (seconds === 0) return "0 s";
  if (seconds >= 1) return `${short(seconds)} s`;
  return seconds >= 1e-3 ? `${short(seconds * 1e3)} ms` : `${short(seconds * 1e6)} us`;
}

const UNITS: Record<string, number> = { ns: 1e-9, us: 1e-6, ms: 1e-3, s: 1, min: 60, h: 3600 };

/** Seconds of a time such as "40 ms"; the engine has already checked it. */
export function seconds(text: string): number {
  const found = /^\s*([\d.eE+-]+)\s*([a-z]+)\s*$/.exec(text);
  return found ? Number(found[1]) * (UNITS[found[2] ?? ""] ?? NaN) : Number(text) || 0;
}

/** A value as a user writes it; a number alone has the unit of the form. */
export const withUnit = (text: string, unit: string): string => (/^-?[\d.]+(e[+-]?\d+)?$/i.test(text) ? `${text} ${unit}` : text);
