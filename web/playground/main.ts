// SPDX-License-Identifier: Apache-2.0
/** The playground: schedules, the picture of each, and what every metric says, live. */

import "../src/theme.css";
import "./playground.css";
import * as m from "../src/arithmetic";
import { nameOf } from "../src/policies";
import { legend, play, reach } from "../src/timeline";
import { byId, data, dress, fill, h, shown } from "../src/ui";
import { Panel, sentence } from "./panel";
import { type Preset, type State, type System, DEAREST, decode, encode, MOST, preset, PRESETS } from "./state";
import { MEANING, ORDER, reason } from "./words";

/** Source tokens per second while it plays, and ms until a change is in the address. */
const RATE = 2;
const SETTLE = 200;
const STEP = 0.05;

let state: State = { systems: [] };
let asked: Preset | undefined;
let panels: Panel[] = [];
let stop: (() => void) | undefined;
let pending: ReturnType<typeof setTimeout> | undefined;

// ---- what is on the page ----------------------------------------------------------------------------------------

const buttons = PRESETS.map((table) =>
  h(
    "button",
    {
      type: "button",
      "aria-pressed": "false",
      onclick: () => {
        asked = table;
        change(preset(table));
      },
    },
    h("b", {}, table.name),
    h("span", {}, table.title),
  ),
);
const slider = h("input", { type: "range", min: 0, step: STEP, oninput: () => change({ ...state, cost: slider.valueAsNumber }) });
const costText = h("b");
const usual = h("button", { type: "button", onclick: () => change({ ...state, cost: undefined }) }, "|x|/|y|");
const reference = h("input", {
  type: "number",
  min: 1,
  max: 2 * MOST,
  step: 1,
  oninput: () => {
    const value = Math.round(reference.valueAsNumber);
    if (value >= 1 && value <= 2 * MOST) change({ ...state, reference: value });
    if (reference.value === "") change({ ...state, reference: undefined });
  },
});
const scores = h("table", { class: "scores" });
const playing = h("button", { type: "button", class: "play", onclick: () => toggle() }, "▶ Play");
const second = h("button", { type: "button", onclick: () => compare() });
const signs = legend();

function build(): void {
  byId("presets").append(...buttons);
  byId("knobs").append(
    h(
      "div",
      { class: "cost" },
      h("label", {}, h("span", {}, "What writing a token costs, d = ", costText), slider),
      usual,
    ),
    h("label", { class: "knob" }, h("span", {}, "reference |y*|, for LAAL and YAAL"), reference),
  );
  byId("scores").append(scores);
}

/** As many panels as there are schedules. */
function arrange(): void {
  if (panels.length === state.systems.length) return;
  stop?.();
  const spots = state.systems.map((_, place) => h("div", { class: "noprint" }, ...(place === 0 ? [playing, second] : [])));
  panels = spots.map((spot, place) => new Panel(place, (system) => replace(place, system), spot));
  fill(byId("systems"), ...panels.map((panel) => panel.element), signs);
}

// ---- what changes it --------------------------------------------------------------------------------------------

function change(next: State): void {
  state = next;
  byId("faults").textContent = "";
  show();
  clearTimeout(pending);
  pending = setTimeout(remember, SETTLE);
}

function replace(place: number, system: System): void {
  change({ ...state, systems: state.systems.map((one, i) => (i === place ? system : one)) });
}

/** The state into the address, without a new entry in the history for every pixel of a drag. */
function remember(): void {
  history.replaceState(null, "", `#${encode(state)}`);
}

function restore(): void {
  if (location.hash === `#${encode(state)}`) return;
  const { state: found, faults } = decode(location.hash);
  state = found;
  show();
  byId("faults").textContent = faults.join(" ");
}

function compare(): void {
  const [first] = state.systems;
  if (first) change({ ...state, systems: state.systems.length > 1 ? [first] : [first, first] });
}

function toggle(): void {
  if (stop) {
    stop();
    return;
  }
  playing.textContent = "■ Stop";
  stop = play(
    panels.map((panel) => panel.timeline),
    RATE,
    () => {
      stop = undefined;
      playing.textContent = "▶ Play";
    },
  );
}

// ---- what it shows ----------------------------------------------------------------------------------------------

function show(): void {
  arrange();
  const { systems, cost } = state;
  const end = Math.max(...systems.map((system) => reach({ ...sentence(system, state), label: "", cost })));
  panels.forEach((panel, place) => {
    const system = systems[place];
    if (system) panel.show(system, state, end);
  });
  const now = encode(state);
  // Tables 1 and 3, and 2 and 4, show the same systems: the one that was asked for is told
  const same = PRESETS.filter((table) => encode(preset(table)) === now);
  const table = same.find((one) => one === asked) ?? same[0];
  buttons.forEach((button, i) => dress(button, { "aria-pressed": String(table !== undefined && PRESETS[i] === table) }));
  // while a schedule of it is changed, the story stays, so that nothing moves under the hand
  asked = table ?? asked;
  byId("story").textContent = asked?.story ?? "";
  byId("story").classList.toggle("quiet", !table);
  second.textContent = systems.length > 1 ? "Only A" : "Compare with another";
  showKnobs();
  showScores();
}

function showKnobs(): void {
  const costs = state.systems.map((system) => m.writeCost(system.schedule)).filter(Number.isFinite);
  const most = Math.min(DEAREST, Math.max(2, Math.ceil(2 * Math.max(0, ...costs)), Math.ceil(state.cost ?? 0)));
  dress(slider, { max: most });
  const usually = [...new Set(costs.map((d) => shown(d, 2)))].join(" and ");
  slider.value = String(state.cost ?? costs[0] ?? 1);
  costText.textContent = state.cost === undefined ? `|x|/|y| = ${usually || "–"}` : shown(state.cost, 2);
  dress(slider, { "aria-valuetext": `${costText.textContent} source tokens` });
  dress(usual, { "aria-pressed": String(state.cost === undefined) });
  reference.placeholder = [...new Set(state.systems.map((system) => system.schedule.delays.length))].join(", ");
  if (document.activeElement !== reference) reference.value = String(state.reference ?? "");
}

function showScores(): void {
  const sentences = state.systems.map((system) => sentence(system, state));
  const found = sentences.map((s) => ({ ...m.scores(s), cost: m.dal(s, state.cost) }));
  const heads = state.systems.map(({ policy }, place) =>
    h("th", { scope: "col", class: "number" }, "AB"[place], h("span", { class: "aloud" }, policy ? ` ${nameOf(policy)}` : "")),
  );
  const rows = ORDER.filter((name) => name !== "cost" || state.cost !== undefined).map((name) => {
    const { title, text } = MEANING[name];
    const label = name === "cost" ? `DAL, d = ${shown(state.cost ?? NaN, 2)}` : name;
    const values = found.map((values, place) => {
      const value = values[name];
      const why = Number.isNaN(value) ? reason(name, sentences[place] as m.Sentence) : undefined;
      const cell = h("td", { class: "number", "data-metric": name, "data-system": "ab"[place] }, data(value));
      if (why) cell.append(h("span", { class: "why" }, why));
      return cell;
    });
    return h(
      "tr",
      { class: name === "DAL" || name === "cost" || name === "AL" ? `main is-${name}` : "" },
      h("th", { scope: "row" }, h("abbr", { title }, label)),
      ...values,
      h("td", { class: "meaning small quiet" }, text),
    );
  });
  fill(
    scores,
    h("caption", { class: "aloud" }, "Latency in source tokens; AP is a proportion"),
    h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "metric"), ...heads, h("th", { scope: "col" }, "what it says"))),
    h("tbody", {}, ...rows),
  );
}

build();
restore();
addEventListener("hashchange", restore);
