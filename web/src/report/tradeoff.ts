// SPDX-License-Identifier: Apache-2.0
/** Quality–latency: a point per system with intervals on both axes, on the clock of one's choice. */

import { dot, line, link, pointer, rect, ruleX, ruleY, text, tip } from "@observablehq/plot";
import { fill, h } from "../ui";
import { MANY, families, settings } from "./families";
import { figure } from "./figure";
import { amount, arrow, colour, range, scaled, short, symbol, unitName } from "./format";
import { names, spread } from "./names";
import { chooser, clockSwitch, named, sign, table } from "./parts";
import { behind } from "./save";
import type { State } from "./state";
import type { Maybe, Point, Regime } from "./types";

interface Dot {
  readonly system: number;
  readonly name: string;
  readonly x: number;
  readonly y: number;
  readonly x1: number;
  readonly x2: number;
  readonly y1: number;
  readonly y2: number;
  readonly x0: number;
  readonly title: string;
}

export function tradeoff(body: HTMLElement, state: State): void {
  const { data } = state;
  const { tradeoff: all, metrics, systems, comparison: compared } = data;
  if (!all.latency.length || !all.clocks.length) {
    body.append(h("p", { class: "quiet" }, "There is no metric of latency to draw."));
    return;
  }
  // what a shared task judges by, where it is there
  let latency = all.regimes[0]?.metric ?? (all.latency.includes("DAL") ? "DAL" : (all.latency[0] ?? ""));
  let quality: string | undefined = all.quality[0];
  let regime: Regime | undefined;
  const unit = data.unit;
  const qualityUnit = (): string => metrics.find((m) => m.name === quality)?.unit ?? "points";
  const higher = (): boolean => metrics.find((m) => m.name === quality)?.higher ?? true;
  const groups = families(systems.map((one) => one.name));
  const many = systems.length > MANY;
  // of many systems, a point is called by its setting, and the key says which family it is of
  const labels = many ? settings(systems.map((one) => one.name)) : systems.map((one) => one.name);
  const numbers = h("div", {});
  const key = h("p", { class: "small keys" });
  const regimes = h("span", {});
  const note = h("p", { class: "quiet small" });

  const qualityOf = (s: number): Point | undefined => compared.scores[s]?.[metrics.findIndex((m) => m.name === quality)];
  const pointOf = (s: number): Point | undefined => all.points[state.choice.clock]?.[latency]?.[s];
  const finite = (value: Maybe | undefined, other: number): number => value ?? other;
  const dots = (): Dot[] =>
    state.shown.flatMap((s) => {
      const one = systems[s];
      const [p, q] = [pointOf(s), qualityOf(s)];
      if (!one || !p || p.value === null || (quality !== undefined && (q?.value ?? null) === null)) return [];
      const [x, y] = [scaled(p.value, unit), q?.value ?? s];
      const lines = [
        short(one.name, 40),
        `${latency} ${amount(p.value, unit)} ${unitName(unit)} ${range(p.low, p.high, unit)}`,
        ...(quality === undefined ? [] : [`${quality} ${amount(q?.value, qualityUnit())} ${range(q?.low ?? null, q?.high ?? null, qualityUnit())}`]),
      ];
      return {
        system: s,
        name: short(labels[s] ?? ""),
        x,
        y,
        x1: finite(p.low === null ? null : scaled(p.low, unit), x),
        x2: finite(p.high === null ? null : scaled(p.high, unit), x),
        y1: finite(q?.low, y),
        y2: finite(q?.high, y),
        x0: scaled(all.points["ideal"]?.[latency]?.[s]?.value ?? NaN, unit),
        title: lines.join("\n"),
      };
    });

  const drawn = figure("Quality against latency", (width) => {
    const here = dots();
    const place = new Map(here.map((d) => [d.system, d]));
    const bands = (regime?.limits ?? []).map(([name, limit], i, every) => ({ name, x1: scaled(every[i - 1]?.[1] ?? 0, "ms"), x2: scaled(limit, "ms"), i }));
    const others = here.filter((d) => state.choice.clock !== "ideal" && Number.isFinite(d.x0));
    const ends = [...here.flatMap((d) => [d.x1, d.x2]), ...others.map((d) => d.x0), ...bands.map((b) => b.x2)];
    const [least, most] = [Math.min(...ends), Math.max(...ends)];
    const domain: [number, number] = bands.length ? [Math.min(0, least), most] : spread(least, most);
    const height = quality === undefined ? 60 + 34 * systems.length : Math.max(280, Math.min(440, width * 0.55));
    const [bottom, top] = spread(Math.min(...here.map((d) => d.y1)), Math.max(...here.map((d) => d.y2)));
    const pixels = here.map((d) => ({
      x: 52 + ((d.x - domain[0]) / (domain[1] - domain[0])) * (width - 76),
      y: height - 50 - ((d.y - bottom) / (top - bottom)) * (height - 84),
    }));
    return {
      height,
      marginRight: 24,
      marginTop: 24,
      x: { label: `${latency} (${unitName(unit)}, ${state.choice.clock}) →`, grid: true, domain, ticks: Math.min(12, width / 70) },
      y: quality === undefined ? { axis: null, domain: [systems.length - 0.5, -0.5] } : { label: `${quality} ${arrow(higher())}`, labelArrow: "none", grid: true, domain: [bottom, top] },
      symbol: { type: "identity" },
      color: { type: "identity" },
      marks: [
        rect(bands, { x1: "x1", x2: "x2", fill: "var(--green)", fillOpacity: (b: { i: number }) => (b.i ? 0.07 : 0.14) }),
        text(bands, { x: "x2", frameAnchor: "top-right", text: (b: { name: string }) => `${b.name} `, textAnchor: "end", dy: 4, fill: "var(--quiet)" }),
        ...groups.map(({ members }) =>
          line(members.flatMap((s) => place.get(s) ?? []).sort((p, q) => p.x - q.x), {
            x: "x",
            y: "y",
            ...(many ? { stroke: colour(members[0] ?? 0), strokeWidth: 2 } : { stroke: "var(--quiet)", strokeOpacity: 0.6 }),
          }),
        ),
        link(others, { x1: "x0", x2: "x", y1: "y", y2: "y", stroke: "var(--quiet)", strokeDasharray: "2 3" }),
        dot(others, { x: "x0", y: "y", r: 3, stroke: (d: Dot) => colour(d.system), fill: "var(--paper)" }),
        ruleY(here, { y: "y", x1: "x1", x2: "x2", stroke: (d: Dot) => colour(d.system), strokeWidth: 1.5, strokeOpacity: many ? 0.3 : 1 }),
        ...(quality === undefined ? [] : [ruleX(here, { x: "x", y1: "y1", y2: "y2", stroke: (d: Dot) => colour(d.system), strokeWidth: 1.5, strokeOpacity: many ? 0.3 : 1 })]),
        dot(here, { x: "x", y: "y", r: many ? 4 : 6, symbol: (d: Dot) => symbol(d.system), fill: (d: Dot) => colour(d.system), stroke: "var(--paper)" }),
        ...names(here, pixels, width),
        tip(here, pointer({ x: "x", y: "y", title: "title", maxRadius: 60 })),
      ],
    };
  });

  const draw = (): void => {
    drawn.redraw();
    fill(key, ...(many ? groups.filter(({ members }) => members.some((s) => !state.choice.hidden.has(s))).map(({ name, members }) => h("span", { class: "key" }, sign(members[0] ?? 0), h("bdi", {}, short(name || "settings", 40)))) : []));
    fill(
      numbers,
      table(
        "Points",
        ["system", `${latency} (${unitName(unit)}, ${state.choice.clock})`, ...(quality === undefined ? [] : [quality])],
        state.shown.map((s) => {
          const [p, q] = [pointOf(s), qualityOf(s)];
          const ends = (of: Point | undefined, u: string): HTMLElement => h("div", { class: "quiet small" }, range(of?.low ?? null, of?.high ?? null, u));
          const one = h("span", {}, h("data", { value: p?.value ?? "", "data-point": s }, amount(p?.value, unit)), ends(p, unit));
          const other = h("span", {}, h("data", { value: q?.value ?? "" }, amount(q?.value, qualityUnit())), ends(q, qualityUnit()));
          return [named(state, s), one, ...(quality === undefined ? [] : [other])];
        }),
      ),
      h("details", {}, h("summary", {}, "Signatures"), h("ul", {}, ...[...new Set(systems.map((_, s) => pointOf(s)?.signature ?? ""))].map((one) => h("li", {}, h("code", {}, one))))),
    );
    note.textContent =
      state.choice.clock === "ideal"
        ? `Further ${higher() ? "up" : "down"} and to the left is better. Bars are intervals.${groups.length ? " Settings of one system are joined." : ""}`
        : `Bars are intervals; hollow points are where the system would be if computing took no time.`;
    if (regime) note.textContent += ` ${regime.source}.`;
  };
  const bandChooser = (): void => {
    const fit = all.regimes.filter((one) => one.metric === latency);
    regime = undefined;
    const entries = [{ value: undefined as Regime | undefined, text: "none" }, ...fit.map((one) => ({ value: one as Regime | undefined, text: one.name }))];
    fill(regimes, fit.length > 0 && chooser("regime", entries, undefined, (one) => {
      regime = one;
      draw();
    }));
  };
  body.append(
    h(
      "div",
      { class: "tools noprint" },
      chooser("latency", all.latency.map((value) => ({ value, text: value })), latency, (name) => {
        latency = name;
        bandChooser();
        draw();
      }),
      ...(all.quality.length > 1 ? [chooser("quality", all.quality.map((value) => ({ value, text: value })), quality ?? "", (name) => {
        quality = name;
        draw();
      })] : []),
      clockSwitch(state, all.clocks),
      regimes,
    ),
    ...(quality === undefined ? [h("p", { class: "quiet" }, "No quality was scored (it needs references, or --column): latency alone.")] : []),
    key,
    drawn.element,
    note,
    behind(numbers),
  );
  bandChooser();
  state.on(["clock", "hidden"], draw);
  draw();
}
