/** The canvas with the packets on the path at a moment. */

import type { RefObject } from "preact";
import { useEffect, useLayoutEffect, useMemo, useState } from "preact/hooks";
import type { Valid } from "../engine/protocol";
import { moment } from "../results/format";
import { draw } from "./draw";
import { type Film, stageOf } from "./stage";

interface Props {
  canvas: RefObject<HTMLCanvasElement | null>;
  checked: Valid;
  film: Film | null;
  time: number;
  /** How long the cross of a dropped packet is shown, s. */
  drops: number;
  colours: string[];
  dark: boolean;
}

export function Path({ canvas, checked, film, time, drops, colours, dark }: Props) {
  const [width, setWidth] = useState(800);
  const stage = useMemo(() => stageOf(checked.scenario, width), [checked, width]);

  useEffect(() => {
    const element = canvas.current?.parentElement;
    if (!element) return undefined;
    const observer = new ResizeObserver(() => setWidth(Math.max(element.clientWidth, 300)));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);

  useLayoutEffect(() => {
    const element = canvas.current;
    const ctx = element?.getContext("2d");
    if (!element || !ctx || !film) return;
    const ratio = window.devicePixelRatio || 1;
    if (element.width !== Math.round(stage.width * ratio)) element.width = Math.round(stage.width * ratio);
    if (element.height !== Math.round(stage.height * ratio)) element.height = Math.round(stage.height * ratio);
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    draw(ctx, { checked, stage, film, colours, time, drops });
  }, [film, stage, colours, time, dark]);

  return <canvas ref={canvas} style={{ width: `${stage.width}px`, height: `${stage.height}px` }} role="img" aria-label={`Packets on the path at ${moment(time)}`} />;
}
