// SPDX-License-Identifier: Apache-2.0
/** What pages are made of: elements whose text is always text, and numbers as they are shown. */

type Child = Node | string | number | null | undefined | false;
type Listener = { [K in `on${string}`]?: (event: never) => void };
type Attributes = Record<string, unknown> & Listener;

/**
 * An element. `class`, `id`, `aria-…` and so on become attributes, `onclick` and so on listeners; what is false, null or
 * undefined is left out. Children that are no nodes become text, never markup.
 */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  dress(element, attributes);
  append(element, children);
  return element;
}

/** An element of a drawing. */
export function svg<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): SVGElementTagNameMap[K] {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  dress(element, attributes);
  append(element, children);
  return element;
}

/** Sets what is given, and takes away what is false, null or undefined. */
export function dress(element: Element, attributes: Attributes): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value as EventListener);
    else if (value === false || value === null || value === undefined) element.removeAttribute(name);
    else {
      const text = value === true && !name.startsWith("aria-") ? "" : String(value); // aria-hidden="" would mean nothing
      if (element.getAttribute(name) !== text) element.setAttribute(name, text);
    }
  }
}

function append(element: Element, children: readonly Child[]): void {
  for (const child of children)
    if (child !== null && child !== undefined && child !== false)
      element.append(child instanceof Node ? child : String(child));
}

/** Everything in an element, instead of what was there. */
export function fill(element: Element, ...children: Child[]): void {
  element.replaceChildren();
  append(element, children);
}

/** The element of that id, which the page has. */
export function byId<T extends HTMLElement = HTMLElement>(id: string): T {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no #${id}`);
  return found as T;
}

/** A number with at most so many decimals, and a minus sign as wide as a plus sign; a dash where there is none. */
export function shown(value: number, digits = 3): string {
  if (!Number.isFinite(value)) return "–";
  const text = value.toFixed(digits);
  const short = text.includes(".") ? text.replace(/\.?0+$/, "") : text;
  return (short === "-0" ? "0" : short).replace("-", "−");
}

/** The number as it is shown, with all its digits for machines. */
export function data(value: number, digits = 3, attributes: Attributes = {}): HTMLDataElement {
  return h("data", { ...attributes, value: Number.isFinite(value) ? value : "" }, shown(value, digits));
}
