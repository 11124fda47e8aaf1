// SPDX-License-Identifier: Apache-2.0
/** A drawing as a file: SVG with the colours of the page as they are now, or PNG of it. */

import { h } from "../ui";

const FONT = 'system-ui, -apple-system, "Segoe UI", "Liberation Sans", Arial, sans-serif';
/** Pixels of a PNG for each pixel on the screen. */
const SCALE = 2;

/** The text of a drawing that needs nothing of this page: variables of the theme have their values. */
export function standalone(drawn: SVGSVGElement): string {
  const copy = drawn.cloneNode(true) as SVGSVGElement;
  const { width, height } = drawn.viewBox.baseVal;
  for (const tip of copy.querySelectorAll('[aria-label="tip"]')) tip.remove();
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("width", String(width));
  copy.setAttribute("height", String(height));
  copy.setAttribute("font-family", FONT);
  copy.setAttribute("font-size", "12");
  const paper = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  for (const [name, value] of Object.entries({ width: "100%", height: "100%", fill: "var(--paper)" })) paper.setAttribute(name, value);
  copy.prepend(paper);
  const probe = h("i", { hidden: true });
  document.body.append(probe);
  const text = new XMLSerializer().serializeToString(copy).replace(/var\((--[\w-]+)\)/g, (_, name: string) => {
    probe.style.color = `var(${name})`; // light-dark() has its value only as a colour
    return getComputedStyle(probe).color || "currentColor";
  });
  probe.remove();
  return text.replaceAll("currentColor", getComputedStyle(document.body).color);
}

/** Save a file; an address that holds the data itself would have a limit of its length. */
function download(file: Blob, name: string): void {
  const address = URL.createObjectURL(file);
  h("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000); // when it has long been taken over
}

async function png(text: string): Promise<Blob> {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await image.decode();
  const canvas = h("canvas", { width: image.width * SCALE, height: image.height * SCALE });
  canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((done, fail) => canvas.toBlob((file) => (file ? done(file) : fail(new Error("no picture"))), "image/png"));
}

/** Buttons that save a drawing, which is made when they are pressed. */
export function savers(name: string, drawn: () => SVGSVGElement | null): HTMLElement {
  const file = name.toLocaleLowerCase().replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "").slice(0, 60) || "figure";
  const save = async (kind: "svg" | "png"): Promise<void> => {
    const found = drawn();
    if (!found) return;
    const text = standalone(found);
    download(kind === "png" ? await png(text) : new Blob([text], { type: "image/svg+xml" }), `${file}.${kind}`);
  };
  const button = (kind: "svg" | "png"): HTMLElement =>
    h("button", { type: "button", class: "plain small", "aria-label": `Save ${name} as ${kind.toUpperCase()}`, onclick: () => void save(kind) }, `Save ${kind.toUpperCase()}`);
  return h("figcaption", { class: "savers noprint" }, button("svg"), button("png"));
}

/** A table behind a figure, to be opened. */
export function behind(...content: (HTMLElement | string)[]): HTMLElement {
  return h("details", { class: "numbers" }, h("summary", {}, "Numbers"), ...content);
}
