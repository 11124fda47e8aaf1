// SPDX-License-Identifier: Apache-2.0
/** Segments: a list of all of them, of which only those in sight exist. */

import { fill, h } from "../ui";
import { type Order, choose, value } from "./choose";
import { amount, counted } from "./format";
import { chooser, sign, systemChooser } from "./parts";
import type { State } from "./state";

/** Heights of a row, in px, and how many rows exist beside those in sight. */
const ROW = 64;
const NARROW_ROW = 92;
const MORE = 6;
/** The list is that high at most, in px. */
const TALL = 420;
/** Letters of a text that a row can show at most. */
const LETTERS = 400;

const ORDERS: readonly { readonly value: Order; readonly text: string }[] = [
  { value: "log", text: "order of the log" },
  { value: "value", text: "value of A" },
  { value: "difference", text: "difference of A and B" },
  { value: "gap", text: "AL–DAL gap of A" },
  { value: "length", text: "source length" },
];

export interface List {
  /** The segment that is so many places further down. */
  step(by: number): void;
}

export function list(body: HTMLElement, state: State): List {
  const { data, choice } = state;
  const { segments } = data;
  const timed = data.unit !== "none";
  const narrow = matchMedia("(max-width: 640px)");
  const names = Object.keys(segments.systems[0]?.values ?? {});
  const unit = (name: string): string => data.metrics.find((m) => m.name === name)?.unit ?? data.unit;
  const orders = ORDERS.filter((o) => (timed || !["gap", "length"].includes(o.value)) && (data.systems.length > 1 || o.value !== "difference"));
  let order: Order = "value";
  let [descending, search, document_]: [boolean, string, string | undefined] = [true, "", undefined];
  let rows: number[] = [];

  const inner = h("div", { class: "rows" });
  const box = h("div", { class: "list", role: "listbox", tabindex: 0, "aria-label": "Segments", id: "list" }, inner);
  const count = h("p", { role: "status", class: "quiet small", id: "count" });
  const chip = h("span", {});

  const height = (): number => (narrow.matches ? NARROW_ROW : ROW);
  const item = (at: number): HTMLElement => {
    const row = rows[at] ?? 0;
    const shown = [...new Set([state.choice.a, state.choice.b])];
    const text = (s: number): string => (segments.systems[s]?.prediction?.[row] ?? "").slice(0, LETTERS);
    const reference = (segments.reference?.[row] ?? segments.source?.[row] ?? "").slice(0, LETTERS);
    const element = h(
      "div",
      { class: "row", role: "option", id: `row-${row}`, "data-row": row, "aria-selected": String(row === choice.selected), "aria-posinset": at + 1, "aria-setsize": rows.length },
      h("div", { class: "id" }, h("bdi", {}, (segments.id[row] ?? "").slice(0, 80)), segments.document?.[row] ? h("div", { class: "quiet small" }, h("bdi", {}, segments.document[row].slice(0, 80))) : ""),
      h(
        "div",
        { class: "values" },
        ...shown.map((s) =>
          h("span", { class: "number" }, sign(s), h("data", { value: numeric(value(segments, s, choice.metric, row)) }, amount(value(segments, s, choice.metric, row), unit(choice.metric)))),
        ),
      ),
      h("div", { class: "texts" }, h("div", { class: "quiet", dir: "auto" }, reference || "\u00a0"), h("div", { dir: "auto" }, text(choice.a) || h("i", { class: "quiet" }, "nothing was written"))),
    );
    element.style.transform = `translateY(${at * height()}px)`;
    element.style.height = `${height()}px`;
    return element;
  };
  const paint = (): void => {
    const first = Math.max(0, Math.floor(box.scrollTop / height()) - MORE);
    const last = Math.min(rows.length, Math.ceil((box.scrollTop + box.clientHeight) / height()) + MORE);
    box.style.height = `${Math.max(1, Math.min(rows.length * height() + 2, TALL, innerHeight * 0.7))}px`;
    inner.style.height = `${rows.length * height()}px`;
    inner.replaceChildren(...Array.from({ length: Math.max(0, last - first) }, (_, i) => item(first + i)));
    const selected = choice.selected;
    const there = selected !== undefined && inner.querySelector(`[data-row="${selected}"]`);
    if (there) box.setAttribute("aria-activedescendant", `row-${selected}`);
    else box.removeAttribute("aria-activedescendant");
  };
  const update = (): void => {
    rows = choose(segments, { a: choice.a, b: choice.b, metric: choice.metric, order, descending, only: choice.only?.rows, document: document_, search });
    count.textContent = rows.length === segments.id.length ? counted(rows.length, "segment") : `${rows.length.toLocaleString("en")} of ${counted(segments.id.length, "segment")}`;
    box.scrollTop = 0;
    paint();
  };
  const toSelected = (): void => {
    const at = choice.selected === undefined ? -1 : rows.indexOf(choice.selected);
    if (at < 0) return;
    const [top, bottom] = [at * height(), (at + 1) * height()];
    if (top < box.scrollTop) box.scrollTop = top;
    else if (bottom > box.scrollTop + box.clientHeight) box.scrollTop = bottom - box.clientHeight;
    paint();
  };
  const go = (at: number): void => {
    const row = rows[Math.min(Math.max(at, 0), rows.length - 1)];
    if (row === undefined) return;
    state.set({ selected: row });
  };
  const step = (by: number): void => go((choice.selected === undefined ? -1 : rows.indexOf(choice.selected)) + by);

  box.addEventListener("scroll", paint, { passive: true });
  narrow.addEventListener("change", paint);
  new ResizeObserver(paint).observe(box);
  box.addEventListener("click", (event) => {
    const row = (event.target as Element).closest<HTMLElement>("[data-row]")?.dataset["row"];
    if (row === undefined) return;
    state.set({ selected: Number(row) });
    document.getElementById("timeline")?.scrollIntoView();
  });
  box.addEventListener("keydown", (event) => {
    const page = Math.max(1, Math.floor(box.clientHeight / height()) - 1);
    const steps: Record<string, number> = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    const by = steps[event.key];
    if (by !== undefined) {
      event.preventDefault();
      step(by);
    } else if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      document.getElementById("timeline")?.scrollIntoView();
    }
  });
  state.on(["selected"], toSelected);
  state.on(["a", "b", "metric", "only"], () => {
    showChip();
    update();
  });

  const showChip = (): void => {
    const only = choice.only;
    fill(chip, only && h("button", { type: "button", class: "chip", "aria-label": `show all, not only: ${only.why}`, onclick: () => state.set({ only: undefined }) }, only.why, " ✕"));
  };
  const metrics = names.map((name) => ({ value: name, text: name }));
  const documents = [...new Set((segments.document ?? []).filter((name): name is string => typeof name === "string"))];
  const every = [{ value: undefined, text: "all" }, ...documents.map((name) => ({ value: name as string | undefined, text: name }))];
  const turn = h("button", { type: "button", id: "turn", "aria-pressed": "false", onclick: () => {
    descending = !descending;
    turn.setAttribute("aria-pressed", String(!descending));
    turn.textContent = descending ? "largest first" : "smallest first";
    update();
  } }, "largest first");
  body.append(
    ...(segments.note ? [h("p", { class: "note" }, segments.note)] : []),
    h(
      "div",
      { class: "tools noprint" },
      systemChooser(state, "A", "a"),
      ...(data.systems.length > 1 ? [systemChooser(state, "B", "b")] : []),
      chooser("value", metrics, choice.metric, (metric) => state.set({ metric })),
      chooser("order", orders, order, (wanted) => {
        order = wanted;
        update();
      }),
      turn,
      ...(documents.length > 1
        ? [chooser("recording", every, undefined, (wanted) => {
            document_ = wanted;
            update();
          })]
        : []),
      h("label", { class: "field" }, h("span", {}, "search"), h("input", { type: "search", id: "search", placeholder: "text or id", oninput: (event: Event) => {
        search = (event.target as HTMLInputElement).value;
        update();
      } })),
      chip,
    ),
    count,
    box,
  );
  update();
  if (rows[0] !== undefined) state.set({ selected: rows[0] });
  return { step };
}

const numeric = (number: number): number | string => (Number.isFinite(number) ? number : "");
