/** The focus when what had it goes. */

import type { RefObject } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

/** Makes an element, with tabIndex -1, take the focus when what had it in there goes with what the component draws. */
export function useFocusKept<T extends HTMLElement>(): RefObject<T | null> {
  const ref = useRef<T>(null);
  const had = ref.current?.contains(document.activeElement) ?? false;
  useLayoutEffect(() => {
    if (had && !ref.current?.contains(document.activeElement)) ref.current?.focus();
  });
  return ref;
}
