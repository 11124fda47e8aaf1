// SPDX-License-Identifier: Apache-2.0
/** A figure that Observable Plot draws, as wide as its place, and again when that changes. */

import { type PlotOptions, plot } from "@observablehq/plot";
import { h } from "../ui";
import { savers } from "./save";

export interface Figure {
  readonly element: HTMLElement;
  /** Draws it again, because what it shows has changed. */
  redraw(): void;
}

/**
 * The figure. `onPick` gets what is under the pointer when it is clicked.
 *
 * Plot puts a style element into what it draws, which the content security policy forbids: report.css has these rules.
 */
export function figure<T>(label: string, options: (width: number) => PlotOptions, onPick?: (picked: T) => void): Figure {
  const place = h("div", {});
  const element = h("figure", { class: "plot" }, place, savers(label, () => place.querySelector<SVGSVGElement>("svg.plot-drawn")));
  let width = 0;
  let under: T | undefined;
  const redraw = (): void => {
    if (width < 40) return;
    const drawn = plot({ marginLeft: 52, marginBottom: 40, ...options(width), width, className: "plot-drawn" });
    for (const style of drawn.querySelectorAll("style")) style.remove();
    drawn.setAttribute("role", "img");
    drawn.setAttribute("aria-label", label);
    under = undefined;
    drawn.addEventListener("input", () => (under = drawn.value as T | undefined));
    if (onPick)
      drawn.addEventListener("click", () => {
        if (under) onPick(under);
      });
    place.replaceChildren(drawn);
  };
  new ResizeObserver(([entry]) => {
    const now = Math.floor(entry?.contentRect.width ?? 0);
    if (Math.abs(now - width) < 2) return;
    width = now;
    redraw();
  }).observe(element);
  return { element, redraw };
}
