// SPDX-License-Identifier: Apache-2.0
/** Timeline: the segment that was chosen, in two systems above each other, and a cursor that plays it. */

import { axisX, axisY, line, ruleX } from "@observablehq/plot";
import { effectiveDelays, effectiveLags, ideal, lags } from "../arithmetic";
import { type Picture, type Piece, Timeline, legend, play, reach } from "../timeline";
import { fill, h } from "../ui";
import { value } from "./choose";
import { drawing } from "./drawing";
import { figure } from "./figure";
import { amount, heading, short, unitName } from "./format";
import type { List } from "./list";
import { chooser, named, table } from "./parts";
import { behind, savers } from "./save";
import type { State } from "./state";
import type { Clock, Segments } from "./types";
import { Times, words } from "./unpack";

/** With more tokens than this, a sentence is drawn as lines, without its words. */
const MANY = 160;
/** A piece of speech that is a longer part of it than one of so many has its length written on it. */
const PIECES = 14;
/** A token of text lasts that many seconds when it is played. */
const PACE = 0.5;
/** How much longer the axis may be for the clock of a queue to be shown at first. */
const SQUASHED = 1.5;

export function sentence(body: HTMLElement, state: State, list: List): void {
  const { data, choice } = state;
  if (data.unit === "none") {
    body.append(h("p", { class: "quiet" }, "These logs have no times, so there is nothing to show over time."));
    return;
  }
  const ms = data.unit === "ms";
  const times = data.segments.systems.map((packed) => new Times(packed));
  const clocks = [...new Set(data.systems.flatMap((one) => one.clocks))].filter((clock) => clock !== "ideal");
  // the clock of a queue is what a listener waits for; one that would squash the picture is not the first to be seen
  let overlay: Clock | undefined;
  let speed = 1;
  let stop: (() => void) | undefined;
  const pictures = [new Timeline(), new Timeline()];
  let playable: Timeline[] = [];
  const about = h("div", { class: "about" });
  const places = pictures.map(() => h("div", { class: "picture" }));
  const signs = h("div", {});

  const halt = (): void => stop?.();
  const toggle = (): void => {
    if (stop) {
      halt();
      return;
    }
    playButton.textContent = "■ Stop";
    playButton.setAttribute("aria-pressed", "true");
    stop = play(playable, (ms ? 1000 : 1 / PACE) * speed, () => {
      stop = undefined;
      playButton.textContent = "▶ Play";
      playButton.setAttribute("aria-pressed", "false");
    });
  };
  const playButton = h("button", { type: "button", id: "play", "aria-pressed": "false", onclick: toggle }, "▶ Play");

  const picture = (system: number, row: number, clock: Clock): Picture => {
    const packed = data.segments.systems[system];
    const delays = times[system]?.delays(row) ?? [];
    const x = packed?.x?.[row] ?? 0;
    const level = data.systems[system]?.level ?? "word";
    const target = packed?.pieces?.[row] ?? words(packed?.prediction?.[row] ?? null, level, delays.length);
    const late = clock === "ideal" ? undefined : times[system]?.on(clock, row);
    const first = times[system]?.first(row);
    const source = ms ? reads(delays, x) : spoken(data.segments.source?.[row] ?? null, x);
    return {
      label: `Timeline of ${short(data.systems[system]?.name ?? "")}`,
      delays,
      sourceLength: x,
      unit: ms ? "ms" : "token",
      target: target.map((word) => word.slice(0, 200)),
      ...(source ? { source } : {}),
      ...(late ? { elapsed: late } : {}),
      ...(first ? { first } : {}),
    };
  };

  const overlays: { value: Clock; text: string }[] = [{ value: "ideal", text: "none" }, ...clocks.map((clock) => ({ value: clock, text: clock }))];
  const overlayChooser = chooser("computing", overlays, "ideal" as Clock, (clock) => {
    overlay = clock;
    draw();
  });

  const draw = (): void => {
    halt();
    const row = choice.selected;
    if (row === undefined) {
      fill(about, h("p", { class: "quiet" }, "There is no segment."));
      return;
    }
    const { segments } = data;
    const texts: [string, string | null | undefined][] = [
      ["source", segments.source?.[row]?.endsWith(segments.recording?.[row] ?? " ") ? null : segments.source?.[row]],
      ["reference", segments.reference?.[row]],
    ];
    fill(
      about,
      h("p", {}, "Segment ", h("strong", {}, h("bdi", {}, (segments.id[row] ?? "").slice(0, 500))), segments.document?.[row] ? h("span", { class: "quiet" }, " of ", h("bdi", {}, segments.document[row].slice(0, 500))) : ""),
      sound(segments, row),
      ...texts.map(([name, text]) => text && h("p", { class: "text" }, h("span", { class: "quiet" }, `${name} `), h("span", { dir: "auto", class: "foreign" }, text))),
    );
    const systems = [...new Set([choice.a, choice.b])];
    const plain = systems.map((system) => picture(system, row, "ideal"));
    const queued = clocks.includes("queue") ? systems.map((system) => picture(system, row, "queue")) : plain;
    const far = (pictures: readonly Picture[]): number => Math.max(0, ...pictures.map(reach));
    const clock = overlay ?? (clocks.includes("queue") && far(queued) <= SQUASHED * far(plain) ? "queue" : "ideal");
    const made = clock === "ideal" ? plain : clock === "queue" ? queued : systems.map((system) => picture(system, row, clock));
    const select = overlayChooser.querySelector("select");
    if (select) select.selectedIndex = overlays.findIndex((one) => one.value === clock);
    const end = far(made);
    playable = [];
    places.forEach((place, at) => {
      const [system, p, timeline] = [systems[at], made[at], pictures[at]];
      if (system === undefined || !p || !timeline) {
        fill(place);
        return;
      }
      const prediction = segments.systems[system]?.prediction?.[row];
      const scores = Object.keys(segments.systems[system]?.values ?? {}).map((name) => {
        const m = data.metrics.find((one) => one.name === name);
        const v = value(segments, system, name, row);
        const unit = m?.unit ?? data.unit;
        return h("span", { class: "score" }, m ? heading(m).replace(/ [↑↓]/, "").replace(unitName(unit), "").trim() : name, " ", h("data", { value: Number.isFinite(v) ? v : "" }, amount(v, unit)), ` ${unitName(unit)}`);
      });
      fill(
        place,
        h("h3", {}, named(state, system)),
        h("p", { class: "text" }, prediction ? h("span", { dir: "auto", class: "foreign" }, prediction) : h("i", { class: "quiet" }, "nothing was written")),
        h("p", { class: "small scores" }, ...scores),
      );
      if (p.delays.length > MANY || (!ms && p.sourceLength > 3 * MANY)) place.append(lines(p));
      else if (p.delays.length) {
        place.append(timeline.element); // how many ticks fit depends on its width
        timeline.show({ ...p, end });
        playable.push(timeline);
        place.append(savers(`timeline ${segments.id[row] ?? ""} ${data.systems[system]?.name ?? ""}`, () => drawing({ ...p, end }, `${short(data.systems[system]?.name ?? "", 40)}, segment ${short(segments.id[row] ?? "", 40)}`)));
      }
      if (p.delays.length) place.append(behind(tokens(p)));
    });
    playButton.disabled = !playable.length;
    fill(signs, playable.length > 0 && legend({ elapsed: clock !== "ideal", first: made.some((p) => p.first !== undefined) }));
  };

  const speeds = [0.25, 0.5, 1, 2, 4].map((factor) => ({ value: factor, text: factor === 1 ? (ms ? "real time" : "2 tokens/s") : `× ${factor}` }));
  body.append(
    h(
      "div",
      { class: "tools noprint" },
      h("button", { type: "button", id: "previous", onclick: () => list.step(-1) }, "↑ Previous"),
      h("button", { type: "button", id: "next", onclick: () => list.step(1) }, "↓ Next"),
      playButton,
      chooser("speed", speeds, 1, (factor) => {
        halt();
        speed = factor;
      }),
      ...(clocks.length
        ? [overlayChooser]
        : []),
    ),
    about,
    ...places,
    signs,
  );
  state.on(["selected", "a", "b"], draw);
  draw();
}

/** Where the segment lies in its recording; with its sound, a link to it and a player. */
function sound(segments: Segments, row: number): HTMLElement | false {
  const recording = segments.recording?.[row];
  if (!recording) return false;
  const [offset, x] = [segments.offset?.[row], segments.systems[0]?.x?.[row]];
  const from = (offset ?? 0) / 1000;
  const where = typeof offset === "number" ? `, ${from.toFixed(2)}–${(from + (x ?? 0) / 1000).toFixed(2)} s` : "";
  const text = [h("bdi", {}, short(recording, 120)), where];
  const file = segments.sound[recording];
  if (!file) return h("p", { class: "small" }, h("span", { class: "quiet" }, "recording "), ...text);
  const address = `${file}${where && `#t=${from.toFixed(3)},${(from + (x ?? 0) / 1000).toFixed(3)}`}`;
  return h(
    "p",
    { class: "small tools" },
    h("span", {}, h("span", { class: "quiet" }, "recording "), h("a", { href: address }, ...text)),
    h("audio", { src: address, controls: true, preload: "none", class: "noprint" }),
  );
}

/** The tokens of a timeline in numbers. */
function tokens(p: Picture): HTMLElement {
  const unit = p.unit ?? "token";
  const name = unitName(unit);
  const [effective, lag, effectiveLag] = [effectiveDelays(p), lags(p), effectiveLags(p)];
  const heads = ["token", "word", ...["g", "g′", "lag", "lag′", ...(p.elapsed ? ["computing included"] : [])].map((head) => `${head} (${name})`)];
  const columns = [p.delays, effective, lag, effectiveLag, ...(p.elapsed ? [p.elapsed] : [])];
  const digits = unit === "ms" ? 2 : 3;
  const rows = p.delays.map((_, t) => [String(t + 1), h("bdi", {}, p.target?.[t] ?? ""), ...columns.map((column) => amount(column[t], unit, digits))]);
  return h("div", { class: "tall" }, table(p.label, heads, rows));
}

/** The words of the source, one after the other; undefined if they are not as many as were counted. */
export function spoken(text: string | null, x: number): Piece[] | undefined {
  const parts = (text ?? "").split(/\s+/u).filter((word) => word !== "");
  return parts.length === x ? parts.map((word, i) => ({ text: word.slice(0, 200), start: i, end: i + 1 })) : undefined;
}

/** Speech, as it was read before something was written; what words it has is not known. */
export function reads(delays: readonly number[], x: number): Piece[] {
  const ends = [...new Set(delays.map((g) => Math.min(g, x)).filter((g) => g > 0))].sort((p, q) => p - q);
  if (x > (ends.at(-1) ?? 0)) ends.push(x);
  return ends.map((end, i) => {
    const start = ends[i - 1] ?? 0;
    // what is too short for its number has none
    return { text: (end - start) * PIECES > x ? `${amount(end - start, "ms", 2)} s` : "", start, end };
  });
}

/** A sentence of very many tokens: lines of g, g', the ideal, the first showing, and computing included. */
function lines(p: Picture): HTMLElement {
  const scale = p.unit === "ms" ? 1000 : 1;
  const kinds: [string, readonly number[], string, string][] = [
    ["ideal", ideal(p), "var(--ink)", "1 4"],
    ["first shown", p.first ?? [], "var(--blue)", "1 3"],
    [p.first ? "stable, g" : "written, g", p.delays, "var(--blue)", "none"],
    ["if writing takes time, g′", effectiveDelays(p), "var(--vermilion)", "6 3"],
    ["computing included", p.elapsed ?? [], "var(--green)", "2 3"],
  ];
  const there = kinds.filter(([, times]) => times.length > 0);
  const drawn = figure(p.label, (width) => ({
    height: 320,
    x: { label: `source time (${p.unit === "ms" ? "s" : "tokens"}) →` },
    y: { label: "target tokens ↓", reverse: true },
    marks: [
      axisX({ ticks: Math.max(3, width / 90) }),
      axisY({ ticks: 6 }),
      ruleX([p.sourceLength / scale], { stroke: "var(--quiet)" }),
      ...there.map(([, times, stroke, dashes]) =>
        line(times.map((time, t) => ({ x: time / scale, y: t + 1 })), { x: "x", y: "y", stroke, strokeDasharray: dashes, strokeWidth: 1.5 }),
      ),
    ],
  }));
  return h(
    "div",
    {},
    h("p", { class: "quiet small" }, `${p.delays.length} tokens: lines instead of words.`),
    drawn.element,
    h("p", { class: "small keys" }, ...there.map(([name, , stroke, dashes]) => key(name, stroke, dashes))),
  );
}

function key(name: string, stroke: string, dashes: string): HTMLElement {
  const stick = h("i", { class: "stick" });
  stick.style.borderTop = `2px ${dashes === "none" ? "solid" : dashes.startsWith("6") ? "dashed" : "dotted"} ${stroke}`;
  return h("span", { class: "key" }, stick, name);
}
