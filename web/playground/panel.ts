// SPDX-License-Identifier: Apache-2.0
/** One system: its policy, its schedule as text, its picture, and the table that the paper would print of it. */

import * as m from "../src/arithmetic";
import { type Kind, type Policy, nameOf } from "../src/policies";
import { parse, move, resize, write } from "../src/schedule";
import { Timeline } from "../src/timeline";
import { data, dress, fill, h, shown } from "../src/ui";
import { type State, type System, made, MOST } from "./state";
import { remarks } from "./words";

const KINDS: Record<Kind | "hand", string> = {
  hand: "by hand",
  wait: "wait-k",
  catchup: "wait-k, catch-up",
  rate: "wait-k, catch-up c",
  antagonist: "antagonist",
  segment: "segment-wise",
  offline: "offline",
  prescient: "prescient",
};

const WHAT: Record<Kind | "hand", string> = {
  hand: "Drag a ●, or type R and W.",
  wait: "Reads k tokens, then writes and reads by turns.",
  catchup: "wait-k that reads only as fast as it should write: at the rate |x|/|y|.",
  rate: "wait-k with a share c of writes that come without a read.",
  antagonist: "wait-k that delays its last read until its last write.",
  segment: "Reads k tokens, writes their share of the target, and so on.",
  offline: "Reads everything, then writes.",
  prescient: "Writes without reading: the ideal translator.",
};

/** The sentence that the metrics see. */
export function sentence({ schedule }: System, { reference }: State): m.Sentence {
  return { ...schedule, referenceLength: reference };
}

export class Panel {
  readonly element: HTMLElement;
  readonly timeline: Timeline;
  private readonly title = h("h2");
  private readonly kind: HTMLSelectElement;
  private readonly k = this.field(0, MOST, 1);
  private readonly c = this.field(0, 0.95, 0.05);
  private readonly x = this.field(1, MOST, 1);
  private readonly y = this.field(1, MOST, 1);
  private readonly actions = h("input", {
    type: "text",
    class: "actions",
    spellcheck: "false",
    autocomplete: "off",
    autocapitalize: "characters",
    oninput: () => this.typed(),
    onblur: () => this.current && this.showActions(this.current),
  });
  private readonly summary = h("p", { class: "summary" });
  private readonly fault = h("p", { class: "fault small", role: "alert" });
  private readonly what = h("p", { class: "what small quiet" });
  private readonly remarks = h("ul", { class: "remarks" });
  private readonly table = h("div", { class: "scroll", tabindex: 0, role: "region" });
  private current: System | undefined;

  constructor(
    private readonly place: number,
    private readonly onChange: (system: System) => void,
    actions: HTMLElement,
  ) {
    const options = Object.entries(KINDS).map(([value, text]) => h("option", { value }, text));
    this.kind = h("select", { onchange: () => this.chosen() }, ...options);
    this.timeline = new Timeline({
      onMove: (t, g) => this.current && this.onChange({ schedule: move(this.current.schedule, t, g) }),
    });
    const letter = "AB"[place] ?? "";
    const id = `fault-${letter}`;
    dress(this.fault, { id });
    dress(this.actions, { "aria-describedby": id });
    dress(this.table, { "aria-label": `Lags of schedule ${letter}` });
    const labelled = (text: string, input: HTMLElement, name: string): HTMLElement =>
      h("label", { class: `knob ${name}` }, h("span", {}, text), input);
    this.element = h(
      "section",
      { class: "system", "aria-label": `Schedule ${letter}`, "data-system": letter.toLowerCase() },
      h("div", { class: "head" }, this.title, this.summary, actions),
      h(
        "div",
        { class: "knobs" },
        labelled("policy", this.kind, "policy"),
        labelled("k", this.k, "k"),
        labelled("c", this.c, "c"),
        labelled("source |x|", this.x, "x"),
        labelled("target |y|", this.y, "y"),
        labelled("schedule", this.actions, "schedule"),
      ),
      this.fault,
      this.what,
      this.timeline.element,
      this.remarks,
      h("details", { class: "table" }, h("summary", {}, "Token by token, as the paper prints it"), this.table),
    );
  }

  show(system: System, state: State, end: number): void {
    this.current = system;
    const { schedule, policy } = system;
    const letter = "AB"[this.place] ?? "";
    const name = policy ? nameOf(policy) : KINDS.hand;
    this.title.textContent = `${letter}: ${name}`;
    const kind = policy?.kind ?? "hand";
    this.kind.value = kind;
    this.what.textContent = WHAT[kind];
    const [needsK, needsC] = [!["hand", "offline", "prescient"].includes(kind), kind === "rate"];
    for (const [field, needed] of [[this.k, needsK], [this.c, needsC]] as const)
      if (field.parentElement) field.parentElement.hidden = !needed;
    this.k.min = kind === "segment" ? "1" : "0";
    if (policy) this.put(this.k, policy.k);
    if (policy) this.put(this.c, policy.c);
    this.put(this.x, schedule.sourceLength);
    this.put(this.y, schedule.delays.length);
    if (document.activeElement !== this.actions) this.showActions(system);
    const s = sentence(system, state);
    const label = `${name}: ${schedule.sourceLength} source tokens, ${schedule.delays.length} target tokens over time`;
    this.timeline.show({ ...s, label, cost: state.cost, end });
    fill(this.summary, "AL ", data(m.al(s), 2, { class: "g" }), " DAL ", data(m.dal(s), 2, { class: "e" }));
    fill(this.remarks, ...remarks(s).map((text) => h("li", {}, text)));
    this.showTable(s, state.cost);
  }

  private field(min: number, max: number, step: number): HTMLInputElement {
    return h("input", { type: "number", min, max, step, inputmode: "decimal", oninput: () => this.set() });
  }

  /** A number that is being typed is left alone. */
  private put(field: HTMLInputElement, value: number): void {
    if (document.activeElement !== field) field.value = String(value);
  }

  /** What a field says; what it said before, if it says nothing that can be. */
  private get(field: HTMLInputElement, before: number): number {
    const value = field.valueAsNumber;
    if (Number.isNaN(value)) return before;
    const inside = Math.min(Math.max(value, Number(field.min)), Number(field.max));
    return field.step === "1" ? Math.round(inside) : Math.round(inside * 1e4) / 1e4;
  }

  private showActions({ schedule }: System): void {
    this.actions.value = write(schedule);
    this.fault.textContent = "";
  }

  private typed(): void {
    try {
      const schedule = parse(this.actions.value);
      const most = Math.max(schedule.sourceLength, schedule.delays.length);
      if (most > MOST) throw new Error(`there is room for ${MOST} reads and ${MOST} writes, not for ${most}`);
      this.fault.textContent = "";
      this.onChange({ schedule });
    } catch (error) {
      this.fault.textContent = `${(error as Error).message}.`;
    }
  }

  private chosen(): void {
    const { schedule, policy } = this.current ?? {};
    if (!schedule) return;
    const kind = this.kind.value as Kind | "hand";
    if (kind === "hand") {
      this.onChange({ schedule });
      return;
    }
    const [x, y] = [Math.max(schedule.sourceLength, 1), Math.max(schedule.delays.length, 1)];
    const k = policy && policy.k > 0 ? policy.k : Math.max(schedule.delays[0] ?? 0, 1);
    this.onChange(made({ kind, k, c: kind === "rate" ? policy?.c || 0.25 : 0 }, x, y));
  }

  private set(): void {
    if (!this.current) return;
    const { schedule, policy } = this.current;
    const x = this.get(this.x, schedule.sourceLength);
    const y = this.get(this.y, schedule.delays.length);
    if (!policy) {
      this.onChange({ schedule: resize(schedule, x, y) });
      return;
    }
    const changed: Policy = { kind: policy.kind, k: this.get(this.k, policy.k), c: this.get(this.c, policy.c) };
    this.onChange(made(changed, x, y));
  }

  /** Rows as in the paper's tables: the ideal, g and ℓ up to τ with AL, g' and ℓ' with DAL. */
  private showTable(s: m.Sentence, cost: number | undefined): void {
    const tau = m.cutoff(s);
    const row = (name: string, values: number[], score?: { name: string; value: number }, upTo = Infinity): HTMLElement =>
      h(
        "tr",
        {},
        h("th", { scope: "row" }, name),
        ...values.map((value, t) => h("td", { class: "number" }, t < upTo ? data(value, 2) : "–")),
        h("td", { class: "number score" }, score && `${score.name} ${shown(score.value, 3)}`),
      );
    const d = cost ?? m.writeCost(s);
    const name = cost === undefined ? "DAL" : `DAL(${shown(cost, 2)})`;
    fill(
      this.table,
      h(
        "table",
        { class: "tokens small" },
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            h("th", { scope: "col" }, "t"),
            ...s.delays.map((_, t) => h("th", { scope: "col", class: "number" }, t + 1)),
            h("th", { scope: "col" }),
          ),
        ),
        h(
          "tbody",
          {},
          row("(t−1)/γ", m.ideal(s)),
          row("g(t)", [...s.delays]),
          row("ℓ(t)", m.lags(s), { name: "AL", value: m.al(s) }, tau),
          cost !== undefined && row(`(t−1)·${shown(d, 2)}`, m.ideal(s, cost)),
          row("g′(t)", m.effectiveDelays(s, cost)),
          row("ℓ′(t)", m.effectiveLags(s, cost), { name, value: m.dal(s, cost) }),
        ),
      ),
    );
  }
}
