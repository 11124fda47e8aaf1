// SPDX-License-Identifier: Apache-2.0
/** Comparison: scores with intervals and marks, to sort, to hide, and to copy. */

import { fill, h } from "../ui";
import { MANY } from "./families";
import { best, csv, latex } from "./export";
import { amount, arrow, chance, heading, range, short, unitName } from "./format";
import { copier, named, verdict } from "./parts";
import type { State } from "./state";
import type { Pair } from "./types";

export function comparison(body: HTMLElement, state: State): void {
  const { comparison: compared, metrics, systems } = state.data;
  const hidden = new Set<number>();
  let [by, down]: [number | undefined, boolean] = [undefined, false];
  const told = h("span", { role: "status", class: "quiet" });
  const place = h("div", { class: systems.length > MANY ? "scroll tall" : "scroll", role: "region", "aria-label": "Scores", tabindex: 0 });

  const columns = (): number[] => metrics.map((_, c) => c).filter((c) => !hidden.has(c));
  const rows = (): number[] => {
    const order = [...state.shown];
    if (by === undefined) return order;
    const at = by;
    const of = (s: number): number => compared.scores[s]?.[at]?.value ?? (down ? -Infinity : Infinity);
    return order.sort((one, other) => (down ? of(other) - of(one) : of(one) - of(other)) || one - other);
  };
  const shown = () => ({ names: systems.map((one) => one.name), metrics, compared, rows: rows(), columns: columns() });

  const sort = (c: number): void => {
    const first = metrics[c]?.higher ?? false;
    [by, down] = by !== c ? [c, first] : down === first ? [c, !first] : [undefined, false];
    draw();
    place.querySelector<HTMLElement>(`[data-column="${c}"]`)?.focus();
  };
  const draw = (): void => {
    const head = columns().map((c) => {
      const m = metrics[c];
      const now = by === c ? (down ? "descending" : "ascending") : "none";
      const text = [h("span", {}, m ? `${m.name} ${arrow(m.higher)}` : ""), h("span", { class: "quiet" }, m ? unitName(m.unit) : "")];
      const mark = h("span", { "aria-hidden": true, class: "order" }, by === c ? (down ? "▼" : "▲") : "");
      return h(
        "th",
        { scope: "col", class: "number", "aria-sort": now },
        h("button", { type: "button", class: "plain", "data-column": c, title: m?.summary ?? "", onclick: () => sort(c) }, ...text, mark),
      );
    });
    const lines = rows().map((s) =>
      h(
        "tr",
        {},
        h("th", { scope: "row" }, named(state, s), verdict(state, s)),
        ...columns().map((c) => {
          const [one, m] = [compared.scores[s]?.[c], metrics[c]];
          if (!one || !m) return h("td", {});
          const value = h("data", { value: one.value ?? "" }, amount(one.value, m.unit));
          return h(
            "td",
            { class: "number", "data-system": s, "data-metric": m.name },
            best(compared.scores, m, c).has(s) && systems.length > 1 ? h("strong", {}, value) : value,
            one.mark && h("sup", {}, one.mark),
            h("div", { class: "quiet small" }, range(one.low, one.high, m.unit)),
            one.undefined > 0 && h("div", { class: "small", title: "segments without a value" }, `${one.undefined} undefined`),
          );
        }),
      ),
    );
    fill(place, h("table", { class: "scores" }, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "system"), ...head)), h("tbody", {}, ...lines)));
  };

  const boxes = metrics.map((m, c) =>
    h(
      "label",
      { class: "box" },
      h("input", {
        type: "checkbox",
        checked: true,
        onchange: (event: Event) => {
          if ((event.target as HTMLInputElement).checked) hidden.delete(c);
          else hidden.add(c);
          draw();
        },
      }),
      m.name,
    ),
  );
  const tools = h(
      "div",
      { class: "tools noprint" },
      h("details", { class: "hide" }, h("summary", {}, "Columns"), h("fieldset", {}, h("legend", { class: "aloud" }, "Columns shown"), ...boxes)),
      copier("Copy LaTeX", () => latex(shown()), told),
      copier("Copy CSV", () => csv(shown()), told),
      told,
    );
  body.append(
    place,
    tools,
    ...inWords(compared.summary),
    h("p", { class: "quiet small" }, [compared.key, compared.how].filter((text) => text).map(sentenceCase).join(". "), "."),
    pairs(state),
    signatures(state, told),
  );
  state.on(["hidden"], draw);
  draw();
}

/** So many pairs are made at once. */
const FEW = 200;

const sentenceCase = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

/** What each system is against the first; of many, to be opened. */
function inWords(sentences: readonly string[]): HTMLElement[] {
  const said = sentences.map((text) => h("p", { class: "small" }, h("bdi", {}, `${text.slice(0, 4000)}.`)));
  return said.length < 3 ? said : [h("details", {}, h("summary", {}, "In words"), ...said)];
}

function pairs(state: State): HTMLElement | string {
  const { comparison: compared, metrics } = state.data;
  if (!compared.pairs.length) return "";
  const unit = new Map(metrics.map((m) => [m.name, m.unit]));
  const line = (pair: Pair): HTMLElement => {
    const u = unit.get(pair.metric) ?? "";
    return h(
      "tr",
      {},
      h("th", { scope: "row" }, pair.metric),
      h("td", {}, named(state, pair.b), " − ", named(state, pair.a)),
      h("td", { class: "number" }, h("data", { value: pair.difference ?? "" }, amount(pair.difference, u)), ` ${unitName(u)}`),
      h("td", { class: "number" }, range(pair.low, pair.high, u)),
      h("td", { class: "number" }, chance(pair.p_adjusted)),
      h("td", {}, pair.verdict),
    );
  };
  const heads = ["metric", "difference of", "difference", `${100 * compared.level} % interval`, "p, corrected", "the first is"];
  const rows = h("tbody", {});
  const element = h(
    "details",
    {},
    h("summary", {}, `Pairs (${compared.pairs.length.toLocaleString("en")})`),
    h(
      "div",
      { class: "scroll tall", role: "region", "aria-label": "Pairs", tabindex: 0 },
      h("table", {}, h("thead", {}, h("tr", {}, ...heads.map((text) => h("th", { scope: "col" }, text)))), rows),
    ),
  );
  const show = (): void => fill(rows, ...compared.pairs.filter(({ a, b }) => !state.choice.hidden.has(a) && !state.choice.hidden.has(b)).map(line));
  if (compared.pairs.length <= FEW) show();
  // thousands of rows are made when somebody looks at them
  else element.addEventListener("toggle", () => element.open && show());
  state.on(["hidden"], () => (compared.pairs.length <= FEW || element.open) && show());
  return element;
}

function signatures(state: State, told: HTMLElement): HTMLElement {
  const { comparison: compared, metrics, systems } = state.data;
  const lines = metrics.flatMap((m, c) => {
    const of = new Map<string, string[]>();
    compared.scores.forEach((row, s) => {
      const text = row[c]?.signature ?? "";
      of.set(text, [...(of.get(text) ?? []), short(systems[s]?.name ?? "", 40)]);
    });
    return [...of].map(([text, names]) => ({ text, whose: of.size > 1 ? names.join(", ") : "", title: heading(m) }));
  });
  const all = [...lines.map(({ text }) => text), ...(compared.signature ? [compared.signature] : [])];
  return h(
    "details",
    { class: "signatures" },
    h("summary", {}, "Signatures"),
    h("ul", {}, ...lines.map(({ text, whose }) => h("li", {}, h("code", {}, text), whose && h("span", { class: "quiet" }, " ", h("bdi", {}, whose))))),
    compared.signature && h("p", {}, h("code", {}, compared.signature)),
    copier("Copy signatures", () => `${all.join("\n")}\n`, told),
  );
}
