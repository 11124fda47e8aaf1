// SPDX-License-Identifier: Apache-2.0
/**
 * One sentence over time: Figure 1 of Cherry & Foster (2019), alive.
 *
 * Time goes to the right, with the source on top as it comes in, and a row per target token: when the ideal translator
 * writes it (·), when it was written, g (●), and when it would have been if writing took time, g' (○). A token that was
 * revised has a mark for the time at which it was first shown (◇); g is then since when it is stable. If `onMove` is given,
 * the ● are sliders, to be dragged or moved by the arrow keys.
 */

import "./timeline.css";
import { type Sentence, cutoff, effectiveDelays, effectiveLags, ideal, lags, overBudget } from "./arithmetic";
import { dress, h, shown, svg } from "./ui";

/** A piece of the source, and when it comes in. */
export interface Piece {
  readonly text: string;
  readonly start: number;
  readonly end: number;
}

export interface Picture extends Sentence {
  /** What the picture is of, for those who cannot see it. */
  readonly label: string;
  /** The source; numbered tokens if not given, and the unit is tokens. */
  readonly source?: readonly Piece[];
  /** The target tokens; numbers if not given. */
  readonly target?: readonly string[];
  /** d, if it is not |x|/|y|. */
  readonly cost?: number | undefined;
  /** When each token was there on the clock, computing included. */
  readonly elapsed?: readonly number[];
  /** When each token was first shown, where it may have been revised since. */
  readonly first?: readonly number[];
  /** How far the axis must reach at least, so that two pictures have one scale. */
  readonly end?: number;
}

export interface Options {
  /** Token t (from 0) was moved to g. */
  readonly onMove?: (t: number, g: number) => void;
  /** A drag ended. */
  readonly onDrop?: () => void;
}

interface Row {
  readonly label: HTMLElement;
  readonly name: HTMLElement;
  readonly track: HTMLElement;
  readonly behind: HTMLElement;
  readonly hidden: HTMLElement;
  readonly ideal: HTMLElement;
  readonly effective: HTMLElement;
  readonly elapsed: HTMLElement;
  readonly first: HTMLElement;
  readonly broke: HTMLElement;
  readonly written: HTMLElement;
  readonly lag: HTMLElement;
  readonly effectiveLag: HTMLElement;
}

/** Rows from which on they are drawn lower, and ticks that fit at most. */
const DENSE = 14;
const TICKS = 12;
/** As many source tokens have room for a number each. */
const LEGIBLE = 16;
/** No tick stands nearer to that of |x|, as a part of the axis, and in px. */
const NEAR = 0.13;
const NEAR_PX = 52;

/** How far the picture of a sentence reaches: to the end of the source, and to its last token. */
export function reach(p: Picture): number {
  const times = [p.sourceLength, ...effectiveDelays(p, p.cost), ...p.delays, ...(p.elapsed ?? []), ...(p.first ?? [])];
  return Math.max(1e-9, ...times.filter(Number.isFinite));
}

/** Steps of 1, 2 or 5 times a power of ten, so many that the ticks fit. */
export function ticks(end: number, most: number, whole: boolean): number[] {
  const rough = end / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((f) => f * power).find((s) => s >= rough * (1 - 1e-9) && (!whole || s >= 1)) ?? 1;
  return Array.from({ length: Math.floor(end / step + 1e-9) + 1 }, (_, i) => i * step);
}

export class Timeline {
  readonly element = h("div", { class: "timeline", role: "group" });
  private readonly source = h("div", { class: "tl-track" });
  private readonly axis = h("div", { class: "tl-track tl-axis" });
  private readonly marks = h("div", { class: "tl-marks", "aria-hidden": true });
  private readonly diagonal = svg("polyline", { class: "tl-diagonal" });
  private readonly stairs = svg("polyline", { class: "tl-stairs" });
  private readonly drawing = svg("svg", { preserveAspectRatio: "none" }, this.diagonal, this.stairs);
  private readonly sourceEnd = h("i", { class: "tl-end" });
  private readonly cutoff = h("i", { class: "tl-cutoff" }, h("span"));
  private readonly cursor = h("i", { class: "tl-cursor", hidden: true });
  private readonly rows: Row[] = [];
  private picture: Picture | undefined;
  private end = 1;
  private dragging: number | undefined;

  constructor(private readonly options: Options = {}) {
    this.marks.append(this.drawing, this.sourceEnd, this.cutoff, this.cursor);
    this.element.append(
      h("div", { class: "tl-label tl-head" }, h("span", {}, "source")),
      this.source,
      h("div", { class: "tl-lag", title: "lag: g(t) − (t−1)d" }, "ℓ"),
      h("div", { class: "tl-lag is-effective", title: "lag once writing takes time: g'(t) − (t−1)d" }, "ℓ′"),
      this.marks,
      h("div", { class: "tl-label" }),
      this.axis,
    );
    if (options.onMove) this.listen();
  }

  /** Draws a sentence; what is the same stays, so that focus and drags survive. */
  show(p: Picture): void {
    const cost = p.cost;
    const [y, x] = [p.delays.length, p.sourceLength];
    this.picture = p;
    // while a token is dragged, the scale must not shrink under the hand
    this.end = Math.max(reach(p), p.end ?? 0, this.dragging === undefined ? 0 : this.end);
    dress(this.element, { "aria-label": p.label });
    this.element.classList.toggle("dense", y > DENSE);
    this.showSource(p);
    this.showAxis(p);
    while (this.rows.length > y) this.drop();
    while (this.rows.length < y) this.add();
    const [want, lag] = [ideal(p, cost), lags(p, cost)];
    const [effective, effectiveLag, over] = [effectiveDelays(p, cost), effectiveLags(p, cost), overBudget(p, cost)];
    const tau = cutoff(p);
    this.rows.forEach((row, t) => {
      const [g, i, e] = [p.delays[t] ?? NaN, want[t] ?? NaN, effective[t] ?? NaN];
      row.name.textContent = p.target?.[t] || String(t + 1);
      dress(row.name, { title: p.target?.[t] });
      row.behind.className = g < i ? "tl-ahead" : "tl-behind";
      this.span(row.behind, Math.min(g, i), Math.max(g, i));
      this.span(row.hidden, Math.max(g, i), e);
      this.at(row.ideal, i);
      this.at(row.effective, e);
      this.at(row.written, g);
      this.at(row.elapsed, p.elapsed?.[t] ?? NaN);
      this.at(row.first, p.first?.[t] ?? NaN);
      this.at(row.broke, over[t] === t ? e : NaN);
      row.lag.textContent = this.amount(lag[t] ?? NaN);
      row.effectiveLag.textContent = this.amount(effectiveLag[t] ?? NaN);
      for (const part of [row.track, row.lag]) part.classList.toggle("is-uncounted", t >= tau);
      if (this.options.onMove) {
        const after = `written after ${shown(g)} of ${shown(x)} source tokens`;
        const late = `lag ${shown(lag[t] ?? NaN)}, ${shown(effectiveLag[t] ?? NaN)} once writing takes time`;
        dress(row.written, { "aria-valuenow": g, "aria-valuemax": x, "aria-valuetext": `${after}; ${late}` });
      }
    });
    this.marks.style.gridRow = `2 / span ${Math.max(y, 1)}`;
    this.marks.hidden = y === 0;
    dress(this.drawing, { viewBox: `0 0 ${this.end} ${Math.max(y, 1)}` });
    const line = (times: number[]): string => times.map((time, t) => `${time},${t + 0.5}`).join(" ");
    dress(this.diagonal, { points: x > 0 ? line(want) : "" });
    dress(this.stairs, { points: x > 0 ? line(effective) : "" });
    this.at(this.sourceEnd, x);
    const cut = y > 0 && x > 0 && tau < y;
    this.cutoff.hidden = !cut;
    this.cutoff.style.top = `${(100 * tau) / Math.max(y, 1)}%`;
    // where there is most room: right of the last row that counts, or left of the first that does not
    this.cutoff.classList.toggle("is-below", tau > y - tau);
    const note = this.cutoff.firstElementChild;
    if (note) note.textContent = `AL stops: τ = ${tau}`;
  }

  /** Puts the cursor at a time: what was heard and said by then stands out. Takes it away without a time. */
  seek(time?: number): void {
    const p = this.picture;
    this.element.classList.toggle("is-playing", time !== undefined);
    this.cursor.hidden = time === undefined;
    if (!p || time === undefined) return;
    this.at(this.cursor, Math.min(time, this.end));
    for (const word of this.source.children)
      word.classList.toggle("is-heard", Number((word as HTMLElement).dataset["end"]) <= time + 1e-9);
    effectiveDelays(p, p.cost).forEach((e, t) => {
      const row = this.rows[t];
      for (const part of row ? [row.track, row.label] : []) part.classList.toggle("is-said", e <= time + 1e-9);
    });
  }

  /** The last time on the axis. */
  get last(): number {
    return this.end;
  }

  private amount(value: number): string {
    return this.picture?.unit === "ms" ? shown(value / 1000, 2) : shown(value, 2);
  }

  private at(mark: HTMLElement, time: number): void {
    mark.hidden = !Number.isFinite(time);
    mark.style.left = `${(100 * time) / this.end}%`;
  }

  private span(bar: HTMLElement, from: number, to: number): void {
    this.at(bar, to > from ? from : NaN);
    bar.style.width = `${(100 * (to - from)) / this.end}%`;
  }

  private showSource(p: Picture): void {
    const every = [1, 5].find((step) => this.end <= LEGIBLE * step) ?? 10;
    const number = (i: number): string => (i % every ? "" : String(i));
    const numbered = (): Piece[] =>
      p.unit === "ms" ? [] : Array.from({ length: p.sourceLength }, (_, i) => ({ text: number(i + 1), start: i, end: i + 1 }));
    const words = (p.source ?? numbered()).map(({ text, start, end }) => {
      const word = h("span", { class: p.source ? "tl-word" : "tl-word is-number", title: p.source && text, "data-end": end }, h("span", { dir: "auto" }, text));
      this.span(word, start, end);
      return word;
    });
    this.source.replaceChildren(...words);
  }

  private showAxis(p: Picture): void {
    const [ms, x] = [p.unit === "ms", p.sourceLength];
    const scale = ms ? 1000 : 1;
    const plain = ticks(this.end / scale, TICKS, !ms).map((value) => value * scale);
    const tick = (time: number, text: string, end = false): HTMLElement => {
      const mark = h("span", { class: end ? "tl-tick is-end" : "tl-tick" }, text);
      this.at(mark, time);
      return mark;
    };
    const near = Math.max(NEAR, NEAR_PX / (this.axis.clientWidth || 600)) * this.end;
    const others = plain.filter((time) => Math.abs(time - x) > near);
    this.axis.replaceChildren(
      ...others.map((time) => tick(time, shown(time / scale, 2))),
      tick(x, `|x| = ${shown(x / scale, 2)}${ms ? " s" : ""}`, true),
    );
  }

  private add(): void {
    const t = this.rows.length;
    const mark = (kind: string): HTMLElement => h("i", { class: `tl-${kind}` });
    const slider = {
      role: "slider",
      tabindex: 0,
      "aria-label": `target token ${t + 1}`,
      "aria-valuemin": 0,
      "data-token": t,
    };
    const name = h("span", { dir: "auto" });
    const row: Row = {
      name,
      label: h("div", { class: "tl-row tl-label" }, name),
      track: h("div", { class: "tl-row tl-track" }),
      behind: mark("behind"),
      hidden: mark("hidden"),
      ideal: mark("ideal"),
      effective: mark("effective"),
      elapsed: mark("elapsed"),
      first: mark("first"),
      broke: h("i", { class: "tl-broke", title: "the largest lag so far; in DAL every later token has at least this lag" }, "◀"),
      written: h("i", { class: "tl-written", ...(this.options.onMove ? slider : {}) }),
      lag: h("div", { class: "tl-row tl-lag" }),
      effectiveLag: h("div", { class: "tl-row tl-lag is-effective" }),
    };
    row.track.append(row.behind, row.hidden, row.effective, row.ideal, row.first, row.elapsed, row.written, row.broke);
    const cells = [row.label, row.track, row.lag, row.effectiveLag];
    cells.forEach((cell, column) => (cell.style.gridArea = `${t + 2} / ${column + 1}`));
    this.marks.before(...cells);
    this.rows.push(row);
  }

  private drop(): void {
    const row = this.rows.pop();
    for (const cell of row ? [row.label, row.track, row.lag, row.effectiveLag] : []) cell.remove();
  }

  private token(event: Event): number | undefined {
    const at = (event.target as Element).closest<HTMLElement>("[data-token]")?.dataset["token"];
    return at === undefined ? undefined : Number(at);
  }

  private listen(): void {
    const { onMove, onDrop } = this.options;
    this.element.addEventListener("pointerdown", (event) => {
      const t = this.token(event);
      if (t === undefined || event.button !== 0) return;
      this.dragging = t;
      this.rows[t]?.written.setPointerCapture(event.pointerId);
      this.rows[t]?.written.focus();
      event.preventDefault();
    });
    this.element.addEventListener("pointermove", (event) => {
      const track = this.dragging === undefined ? undefined : this.rows[this.dragging]?.track;
      if (!track || this.dragging === undefined) return;
      const { left, width } = track.getBoundingClientRect();
      this.move(this.dragging, Math.round(((event.clientX - left) / width) * this.end));
    });
    const drop = (): void => {
      if (this.dragging === undefined) return;
      this.dragging = undefined;
      if (this.picture) this.show(this.picture);
      onDrop?.();
    };
    this.element.addEventListener("pointerup", drop);
    this.element.addEventListener("pointercancel", drop);
    this.element.addEventListener("keydown", (event) => {
      const [t, p] = [this.token(event), this.picture];
      if (t === undefined || !p || !onMove || event.ctrlKey || event.metaKey || event.altKey) return;
      const g = p.delays[t] ?? 0;
      const steps: Record<string, number> = { ArrowLeft: g - 1, ArrowRight: g + 1, Home: 0, End: p.sourceLength };
      const to = steps[event.key];
      const next = { ArrowUp: t - 1, ArrowDown: t + 1 }[event.key];
      if (to === undefined && next === undefined) return;
      event.preventDefault();
      if (to !== undefined) this.move(t, to);
      else this.rows[next ?? t]?.written.focus();
    });
  }

  private move(t: number, g: number): void {
    const p = this.picture;
    const to = Math.min(Math.max(g, 0), p?.sourceLength ?? 0);
    if (p && to !== p.delays[t]) this.options.onMove?.(t, to);
  }
}

/** What the signs mean. */
export function legend(more: { elapsed?: boolean; first?: boolean } = {}): HTMLElement {
  const entries: [string, string][] = [
    ["ideal", "ideal translator, (t−1)d"],
    ...(more.first ? [["first", "first shown"] as [string, string]] : []),
    ["written", more.first ? "stable, g" : "written, g"],
    ["effective", "if writing takes time, g′"],
    ["behind", "lag ℓ, which AL averages"],
    ["hidden", "what it leaves out"],
    ["broke", "the largest lag so far"],
  ];
  if (more.elapsed) entries.push(["elapsed", "there, computing included"]);
  return h(
    "ul",
    { class: "tl-legend", "aria-label": "What the signs mean" },
    ...entries.map(([kind, text]) =>
      h(
        "li",
        {},
        h("span", { class: "tl-sign", "aria-hidden": true }, h("i", { class: `tl-${kind}` }, kind === "broke" && "◀")),
        text,
      ),
    ),
  );
}

/** Plays pictures side by side: `rate` units of time per second. Gives a function that stops it. */
export function play(pictures: readonly Timeline[], rate: number, onEnd: () => void): () => void {
  const end = Math.max(0, ...pictures.map((picture) => picture.last));
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  let frame = 0;
  let start: number | undefined;
  const stop = (): void => {
    cancelAnimationFrame(frame);
    for (const picture of pictures) picture.seek();
    onEnd();
  };
  const step = (now: number): void => {
    start ??= now;
    const time = ((now - start) / 1000) * rate;
    if (time > end + rate) {
      stop();
      return;
    }
    for (const picture of pictures) picture.seek(still ? (Math.floor((2 * time) / rate) * rate) / 2 : time);
    frame = requestAnimationFrame(step);
  };
  frame = requestAnimationFrame(step);
  return stop;
}
