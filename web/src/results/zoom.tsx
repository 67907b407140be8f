/** The span of time that figures show, and the buttons that change it. */

export interface Zoom {
  span: [number, number];
  /** The end of the run, s. */
  end: number;
  /** Whether a part is shown. */
  isPart: boolean;
  set: (span: [number, number]) => void;
  /** Shows the whole. */
  reset: () => void;
}

/** No part is shorter than this share of the run, as in reports: ticks need room between numbers. */
const LEAST = 1e-4;

/** A span that is as long as a part must be. */
function wide([low, high]: [number, number], end: number): [number, number] {
  const least = end * LEAST;
  if (high - low >= least) return [low, high];
  const begin = Math.min(Math.max((low + high - least) / 2, 0), end - least);
  return [begin, begin + least];
}

/** The zoom of runs that end at a time, with the part that is shown; null for all. */
export function zoomOf(end: number, zoomed: [number, number] | null, change: (zoomed: [number, number] | null) => void): Zoom {
  const span: [number, number] = zoomed && zoomed[0] < end ? wide([zoomed[0], Math.min(zoomed[1], end)], end) : [0, end];
  const set = ([from, to]: [number, number]): void => {
    const [low, high] = wide([Math.max(from, 0), Math.min(to, end)], end);
    change(low <= 0 && high >= end ? null : [low, high]);
  };
  return { span, end, isPart: zoomed !== null, set, reset: () => change(null) };
}

export function ZoomTools({ span: [from, to], end, isPart, set, reset }: Zoom) {
  const width = to - from;
  const scale = (by: number): void => set([from + (width * (1 - by)) / 2, to - (width * (1 - by)) / 2]);
  const move = (by: number): void => {
    const begin = Math.min(Math.max(from + by * width, 0), end - width);
    set([begin, begin + width]);
  };
  return (
    <>
      <button type="button" onClick={() => scale(2)} disabled={!isPart} aria-label="Zoom out" title="Zoom out">−</button>
      <button type="button" onClick={() => scale(0.5)} aria-label="Zoom in" title="Zoom in; or drag over a panel">+</button>
      <button type="button" onClick={() => move(-0.5)} disabled={!isPart} aria-label="Earlier" title="Earlier">◂</button>
      <button type="button" onClick={() => move(0.5)} disabled={!isPart} aria-label="Later" title="Later">▸</button>
      <button type="button" onClick={reset} disabled={!isPart}>All</button>
    </>
  );
}
