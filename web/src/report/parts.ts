// SPDX-License-Identifier: Apache-2.0
/** Parts that several sections have: names of systems, switches, figures, copying. */

import { h } from "../ui";
import { look, short, symbol } from "./format";
import type { State } from "./state";
import type { Clock } from "./types";

const SIGNS: Record<string, string> = {
  circle: "●",
  square: "■",
  triangle: "▲",
  diamond: "◆",
  star: "★",
  cross: "✚",
  wye: "Y",
  times: "✖",
};

/** The sign of a system in its colour; its name must stand beside it. */
export const sign = (system: number): HTMLElement =>
  h("span", { class: `sign sys-${look(system) % 6}`, "aria-hidden": true }, SIGNS[symbol(system)] ?? "●");

/** The name of a system, with its sign. */
export function named(state: State, system: number): HTMLElement {
  const name = state.data.systems[system]?.name ?? "";
  return h("span", { class: "system", title: name.slice(0, 500) }, sign(system), h("bdi", {}, short(name, 60)));
}

/** Whether the latency of a system says what it seems to say; a sound one has no mark. */
export function verdict(state: State, system: number): HTMLElement | string {
  const found = state.data.systems[system]?.verdict;
  if (!found) return "";
  const mark = found.word === "sound" ? "" : "▲ ";
  return h("a", { class: `verdict is-${found.word} small`, href: `#health-${system}`, title: found.reasons.join("; ") || "no threshold is reached" }, mark && h("span", { "aria-hidden": true }, mark), found.word);
}

export interface Entry<T> {
  readonly value: T;
  readonly text: string;
}

/** A labelled list to choose from. */
export function chooser<T>(label: string, entries: readonly Entry<T>[], chosen: T, onChange: (value: T) => void): HTMLLabelElement {
  const select = h("select", {
    onchange: () => {
      const entry = entries[select.selectedIndex];
      if (entry) onChange(entry.value);
    },
  });
  for (const { value, text } of entries) select.append(h("option", { selected: value === chosen }, short(text, 48)));
  return h("label", { class: "field" }, h("span", {}, label), select);
}

/** A system to choose. */
export function systemChooser(state: State, label: string, which: "a" | "b"): HTMLElement {
  const entries = state.data.systems.map((one, value) => ({ value, text: one.name }));
  const make = (): HTMLLabelElement => chooser(label, entries, state.choice[which], (system) => state.set({ [which]: system }));
  const place = h("span", {}, make());
  state.on([which], () => {
    const select = place.querySelector("select");
    if (select) select.selectedIndex = state.choice[which];
  });
  return place;
}

const CLOCKS: Record<Clock, string> = {
  ideal: "as if computing took no time",
  elapsed: "the log's own elapsed time",
  queue: "a step starts when its source is there and the step before is done",
};

/** Buttons that switch the clock; nothing where there is only one. */
export function clockSwitch(state: State, clocks: readonly Clock[]): HTMLElement {
  const group = h("span", { class: "switch", role: "group", "aria-label": "Clock" });
  const draw = (): void => {
    for (const button of group.querySelectorAll("button"))
      button.setAttribute("aria-pressed", String(button.dataset["clock"] === state.choice.clock));
  };
  if (clocks.length > 1)
    for (const clock of clocks)
      group.append(
        h("button", { type: "button", title: CLOCKS[clock], "data-clock": clock, onclick: () => state.set({ clock }) }, clock),
      );
  state.on(["clock"], draw);
  draw();
  return group;
}

/** Puts a text on the clipboard, and says so. */
export function copier(label: string, text: () => string, told: HTMLElement): HTMLButtonElement {
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text());
      told.textContent = "Copied.";
    } catch {
      const area = h("textarea", { class: "aloud", readonly: true, "aria-hidden": true });
      area.value = text();
      document.body.append(area);
      area.select();
      const done = document.execCommand("copy");
      area.remove();
      told.textContent = done ? "Copied." : "This browser does not let pages copy.";
    }
  };
  return h("button", { type: "button", onclick: () => void copy() }, label);
}

/** A table: names of columns, rows of cells. */
export function table(label: string, heads: readonly (string | HTMLElement)[], rows: readonly (readonly (string | HTMLElement)[])[]): HTMLElement {
  return h(
    "div",
    { class: "scroll", role: "region", "aria-label": label, tabindex: 0 },
    h(
      "table",
      {},
      h("thead", {}, h("tr", {}, ...heads.map((head, i) => h("th", { scope: "col", class: i ? "number" : null }, head)))),
      h(
        "tbody",
        {},
        ...rows.map((row) =>
          h("tr", {}, ...row.map((cell, i) => (i ? h("td", { class: "number" }, cell) : h("th", { scope: "row" }, cell)))),
        ),
      ),
    ),
  );
}
