// SPDX-License-Identifier: Apache-2.0
/** Health: what is suspicious about the logs, and the segments behind it. */

import { h } from "../ui";
import { amount, counted, percent, short } from "./format";
import { named, verdict } from "./parts";
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
  const every = joined(data.health);
  const found = every.filter(({ of }) => !of.every(clean));
  const rest = every.filter(({ of }) => of.every(clean));
  const lines = data.systems.map((one, s) => {
    const checks = found.flatMap(({ of }) => (of[s] ? [of[s]] : []));
    const bad = checks.filter((check) => check.bad).length;
    const notes = one.notes.map((note) => h("li", {}, h("bdi", {}, note.said.slice(0, 2000))));
    return h(
      "details",
      { class: "health", id: `health-${s}`, open: data.systems.length === 1 },
      h(
        "summary",
        {},
        named(state, s),
        verdict(state, s),
        h("span", { class: "quiet small" }, [...(one.verdict?.reasons ?? []), bad ? `${counted(bad, "thing")} to look at` : "nothing else to look at"].join("; ")),
      ),
      h("p", { class: "quiet small" }, `${counted(one.segments, "segment")}, ${counted(one.tokens, one.noun)}; ${one.origin}`),
      checks.length > 0 &&
        h(
          "table",
          {},
          h(
            "tbody",
            {},
            ...checks.map((check) =>
              h(
                "tr",
                { "data-check": check.key },
                h("th", { scope: "row" }, check.title, h("div", { class: "quiet small help" }, check.help)),
                h("td", { class: check.bad ? "bad" : null }, cell(state, check, s)),
              ),
            ),
          ),
        ),
      notes.length > 0 && h("ul", { class: "notes" }, ...notes),
    );
  });
  const bad = data.health.flat().filter((check) => check.bad).length;
  body.append(h("p", {}, bad ? `${counted(bad, "thing")} to look at, marked ▲; open a line for what was checked.` : "Nothing suspicious was found; open a line for what was checked."), ...lines);
  if (rest.length)
    body.append(h("p", { class: "quiet" }, `Looked for, and not found: ${rest.map(({ first }) => first.title).join(", ")}.`));
  const more = data.comparison.notes.map((note) => h("li", {}, h("bdi", {}, note.slice(0, 2000))));
  if (more.length) body.append(h("ul", { class: "notes" }, ...more));
  const hide = (): void => lines.forEach((line, s) => (line.hidden = state.choice.hidden.has(s)));
  state.on(["hidden"], hide);
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
