/** Colours, dashes and names, those of the figures of dumbbell (made from dumbbell.figures). */

import looks from "made/looks.json";

export interface Style {
  label: string;
  colour: string;
  marker: string;
}

const styles: Record<string, Style> = looks.styles;

/** The style of an algorithm; options change its label. */
export function styleOf(cc: string): Style {
  const [head = "", options] = cc.split(/\((.*)\)?$/s);
  const name = head.trim().split(":").at(-1) ?? "";
  const style = styles[name] ?? { label: name, colour: looks.other, marker: "" };
  return options ? { ...style, label: `${style.label} (${options.replace(/\)$/, "").trim()})` } : style;
}

/** What is drawn in the colour of the text, and in the pale one, follows the page's theme. */
export function themed(colour: string): string {
  if (colour !== looks.ink && colour !== looks.faint) return colour;
  return variable(colour === looks.ink ? "--ink" : "--faint");
}

/** The same for styles, which follow the theme by themselves, also on paper. */
export const styled = (colour: string): string =>
  colour === "ink" || colour === looks.ink ? "var(--ink)" : colour === "faint" || colour === looks.faint ? "var(--faint)" : colour;

/** A colour as it is on white paper. */
export const printed = (colour: string): string => (colour === "ink" ? looks.ink : colour === "faint" ? looks.faint : colour);

export function variable(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

export interface Line {
  colour: string;
  width: number;
  dash: number[];
}

/** Colours in which flows stay apart. */
export const PACKETS: string[] = looks.packets;

/** Dashes of lines that share a colour. */
export const DASHES = [[], [5, 3], [1.5, 2.5]];

/**
 * The lines of flows: the first of an algorithm has its colour, the second is in ink, others are pale.
 * What another flow has already is replaced by a colour that no algorithm of these has.
 */
export function linesOf(ccs: string[]): Line[] {
  const own = new Set(ccs.map((cc) => styleOf(cc).colour));
  const free = DASHES.flatMap((dash) => PACKETS.filter((colour) => dash.length || !own.has(colour)).map((colour): Line => ({ colour, width: 1.4, dash })));
  const [ranks, taken] = [new Map<string, number>(), new Set<string>()];
  const known = ({ colour, dash }: Line): string => `${colour} ${dash.join()}`;
  return ccs.map((cc) => {
    const rank = ranks.get(cc) ?? 0;
    ranks.set(cc, rank + 1);
    const usual: Line[] = [
      { colour: styleOf(cc).colour, width: 1.6, dash: [] },
      { colour: looks.ink, width: 1.2, dash: [] },
      { colour: looks.faint, width: 1.2, dash: [5, 3] },
      { colour: looks.faint, width: 1.2, dash: [1.5, 2.5] },
    ];
    const wanted = usual[Math.min(rank, 3)] as Line;
    const line = taken.has(known(wanted)) ? (free.find((one) => !taken.has(known(one))) ?? wanted) : wanted;
    taken.add(known(line));
    return line;
  });
}

const BBRS = ["bbr", "bbr2", "f-bbr2", "bbr3"];
/** Whether the `state` of an algorithm is BBR's: that of another one, or of own code, has other numbers. */
export const isBbr = (cc: string): boolean => BBRS.includes((cc.split("(")[0] ?? "").trim());

/** BBR's states by their number. */
export const STATES = new Map<number, { name: string; colour: string }>(
  Object.entries(looks.states as Record<string, string[]>).map(([number, [name = "", colour = ""]]) => [
    Number(number),
    { name, colour },
  ]),
);
