// SPDX-License-Identifier: Apache-2.0
/** Health: what is suspicious about the logs, and the segments behind it. */

import { h } from "../ui";
import { amount, counted, percent, short } from "./format";
import { named } from "./parts";
import type { State } from "./state";
import type { Check } from "./types";

/** What was looked for in any of the systems, in order, each with the check of every system. */
export function joined(health: readonly (readonly Check[])[]): { readonly first: Check; readonly of: (Check | undefined)[] }[] {
  const keys = [...new Set(health.flatMap((checks) => checks.map((check) => check.key)))];
  return keys.map((key) => {
    const of = health.map((checks) => checks.find((check) => check.key === key));
    const first = of.find((check) => check !== undefined);
    if (!first) throw new Error(`no system has ${key}`);
    return { first, of };
  });
}

/** Whether a check found nothing at all. */
export const clean = (check: Check | undefined): boolean => !check || (!check.count && check.value === null && !check.bad);

export function health(body: HTMLElement, state: State): void {
  const { data } = state;
  const all = joined(data.health);
  const found = all.filter(({ of }) => !of.every(clean));
  const rest = all.filter(({ of }) => of.every(clean));
  const bad = found.filter(({ of }) => of.some((check) => check?.bad)).length;
  const said = bad ? `${counted(bad, "thing")} to look at, marked ▲.` : "Nothing suspicious was found.";
  body.append(h("p", {}, said));
  if (found.length)
    body.append(
      h(
        "div",
        { class: "scroll", role: "region", "aria-label": "Health checks", tabindex: 0 },
        h(
          "table",
          { class: "health" },
          h(
            "thead",
            {},
            h("tr", {}, h("th", { scope: "col" }, "check"), ...data.systems.map((_, s) => h("th", { scope: "col" }, named(state, s)))),
          ),
          h(
            "tbody",
            {},
            ...found.map(({ first, of }) =>
              h(
                "tr",
                { "data-check": first.key },
                h("th", { scope: "row" }, first.title, h("div", { class: "quiet small help" }, first.help)),
                ...of.map((check, s) => h("td", { class: check?.bad ? "bad" : null }, h("span", { class: "whose" }, named(state, s)), cell(state, check, s))),
              ),
            ),
          ),
        ),
      ),
    );
  if (rest.length)
    body.append(h("p", { class: "quiet" }, `Looked for, and not found: ${rest.map(({ first }) => first.title).join(", ")}.`));
  const notes = data.systems.flatMap((one, s) => one.notes.map((note) => h("li", {}, named(state, s), ": ", h("bdi", {}, note.said.slice(0, 2000)))));
  const more = data.comparison.notes.map((note) => h("li", {}, h("bdi", {}, note.slice(0, 2000))));
  if (notes.length + more.length)
    body.append(h("details", { open: notes.length + more.length < 5 }, h("summary", {}, "Notes"), h("ul", { class: "notes" }, ...notes, ...more)));
}

function cell(state: State, check: Check | undefined, system: number): HTMLElement {
  if (!check) return h("span", { class: "quiet" }, "–");
  const parts: (HTMLElement | string)[] = [];
  if (check.bad) parts.push(h("span", { class: "flag" }, h("span", { "aria-hidden": true }, "▲ "), h("span", { class: "aloud" }, "look at this: ")));
  if (check.value !== null) parts.push(h("data", { value: check.value, class: "value" }, amount(check.value, check.unit)), " ");
  if (check.count) {
    const of = check.noun === "token" ? state.data.systems[system]?.tokens : state.data.systems[system]?.segments;
    const text = counted(check.count, check.noun);
    const share = of ? h("span", { class: "quiet" }, ` ${percent(check.count / of)}`) : "";
    parts.push(h("span", { class: "count" }, check.rows.length ? behind(state, check, system, text) : text, share));
    if (check.ids.length) parts.push(h("details", { class: "small" }, h("summary", {}, "which"), h("bdi", {}, short(check.ids.slice(0, 50).join(", "), 800))));
  } else if (check.value === null) parts.push(h("span", { class: "quiet" }, "none"));
  return h("span", {}, ...parts);
}

function behind(state: State, check: Check, system: number, text: string): HTMLButtonElement {
  const why = `${check.title}, ${short(state.data.systems[system]?.name ?? "", 40)}`;
  const show = (): void => {
    state.set({ a: system, only: { why, rows: new Set(check.rows) } });
    document.getElementById("segments")?.scrollIntoView();
  };
  return h("button", { type: "button", class: "plain", onclick: show, title: "show them in the list" }, text);
}
