// SPDX-License-Identifier: Apache-2.0
/** Distribution: what a mean does not show. All numbers were computed before; here they are drawn. */

import { dot, line, pointer, pointerX, ruleX, ruleY, text, tip } from "@observablehq/plot";
import { fill, h } from "../ui";
import { MANY } from "./families";
import { figure } from "./figure";
import { amount, colour, dash, percent, scaled, short, symbol, unitName } from "./format";
import { chooser, clockSwitch, named, table } from "./parts";
import { behind } from "./save";
import type { State } from "./state";
import type { Clock, Shares } from "./types";

type Kind = "token" | "segment";

export function distribution(body: HTMLElement, state: State): void {
  const { data, choice } = state;
  const clocks = Object.keys(data.distribution) as Clock[];
  if (!clocks.length) {
    body.append(h("p", { class: "quiet" }, "These logs have no times."));
    return;
  }
  const unit = data.unit;
  const name = unitName(unit);
  let kind: Kind = "token";
  const many = data.systems.length > MANY;
  const numbers = h("div", { class: "tall" });
  const shares = (): Shares | undefined => data.distribution[clocks.includes(choice.clock) ? choice.clock : "ideal"]?.[kind];
  const whose = (s: number): string => short(data.systems[s]?.name ?? "", 24);

  const ecdf = figure("Cumulative distribution of lags", (width) => {
    const all = shares();
    const curves = state.shown.map((s) => (all?.grid ?? []).map((lag, i) => ({ s, x: scaled(lag, unit), y: all?.systems[s]?.share[i] ?? 0 })));
    const title = (d: { s: number; x: number; y: number }): string => `${whose(d.s)}\n${percent(d.y)} of the ${kind}s lag\n${d.x.toFixed(2)} ${name} or less`;
    return {
      height: Math.max(260, Math.min(400, width * 0.5)),
      marginRight: 24,
      x: { label: `lag of a ${kind} (${name}, ${choice.clock}) →`, grid: true, nice: true },
      y: { label: "↑ share with at most this lag", domain: [0, 1], tickFormat: "%", grid: true },
      marks: [
        ...(all?.percentiles ?? []).map((p) => ruleY([p / 100], { stroke: "var(--quiet)", strokeDasharray: "2 3", strokeOpacity: 0.6 })),
        ...curves.map((curve, i) => line(curve, { x: "x", y: "y", stroke: colour(state.shown[i] ?? 0), strokeWidth: many ? 1 : 2, curve: "step-after", strokeDasharray: dash(state.shown[i] ?? 0) })),
        ...state.shown.map((s) =>
          dot((all?.systems[s]?.percentiles ?? []).flatMap((lag, i) => (lag === null ? [] : [{ x: scaled(lag, unit), y: (all?.percentiles[i] ?? 0) / 100 }])), { x: "x", y: "y", fill: colour(s), symbol: symbol(s), r: many ? 2.5 : 4.5, stroke: "var(--paper)" }),
        ),
        tip(curves.flat(), pointer({ x: "x", y: "y", title, maxRadius: 60 })),
      ],
    };
  });
  const draw = (): void => {
    ecdf.redraw();
    const all = shares();
    fill(
      numbers,
      table(
        "Percentiles of the lags",
        ["system", `${kind}s`, ...(all?.percentiles ?? []).map((p) => `p${p} (${name})`)],
        state.shown.map((s) => [named(state, s), (all?.systems[s]?.n ?? 0).toLocaleString("en"), ...(all?.systems[s]?.percentiles ?? []).map((lag, i) => h("data", { value: lag ?? "", "data-percentile": all?.percentiles[i] ?? "" }, amount(lag, unit)))]),
      ),
    );
  };
  const kinds: { value: Kind; text: string }[] = [
    { value: "token", text: "target tokens" },
    { value: "segment", text: "segments (DAL)" },
  ];
  body.append(
    h("div", { class: "tools noprint" }, chooser("lags of", kinds, kind, (wanted) => {
      kind = wanted;
      draw();
    }), clockSwitch(state, clocks)),
    ecdf.element,
    numbers,
    byLength(state),
    overTime(state),
  );
  state.on(["clock", "hidden"], draw);
  draw();
}

function byLength(state: State): HTMLElement | string {
  const { data } = state;
  const { edges, middles, systems } = data.by_length;
  if (edges.length < 3) return "";
  const unit = data.unit;
  const name = unitName(unit);
  const drawn = figure("Lag by source length", (width) => {
    const apart = (5 / width) * scaled((middles.at(-1) ?? 0) - (middles[0] ?? 0), unit); // pixels
    const points = state.shown.flatMap((s) =>
      (systems[s] ?? []).flatMap((bin, i) => {
        const [low, middle, high] = bin.quartiles;
        if (typeof low !== "number" || typeof middle !== "number" || typeof high !== "number") return [];
        const [from, to] = [scaled(edges[i] ?? 0, unit), scaled(edges[i + 1] ?? 0, unit)];
        // systems stand beside each other in their bin, so that their bars can be told apart
        const x = scaled(middles[i] ?? 0, unit) + (state.shown.length > MANY ? 0 : apart * (state.shown.indexOf(s) - (state.shown.length - 1) / 2));
        const title = `${short(data.systems[s]?.name ?? "", 24)}\n${bin.n} segments of ${from.toFixed(1)}–${to.toFixed(1)} ${name}\nmedian DAL ${amount(middle, unit)} ${name}`;
        return { s, x, low: scaled(low, unit), y: scaled(middle, unit), high: scaled(high, unit), title };
      }),
    );
    return {
      height: Math.max(220, Math.min(320, width * 0.45)),
      marginRight: 24,
      x: { label: `source length (${name}) →`, grid: true },
      y: { label: `↑ DAL (${name})`, grid: true, nice: true, zero: true },
      marks: [
        ...state.shown.flatMap((s) => {
          const mine = points.filter((p) => p.s === s);
          return [
            line(mine, { x: "x", y: "y", stroke: colour(s), strokeDasharray: dash(s), strokeWidth: 1.5 }),
            ...(state.shown.length > MANY ? [] : [ruleX(mine, { x: "x", y1: "low", y2: "high", stroke: colour(s), strokeWidth: 1.5 })]),
            dot(mine, { x: "x", y: "y", fill: colour(s), symbol: symbol(s), r: state.shown.length > MANY ? 2.5 : 4, stroke: "var(--paper)" }),
          ];
        }),
        tip(points, pointer({ x: "x", y: "y", title: "title" })),
      ],
    };
  });
  const numbers = h("div", { class: "tall" });
  const draw = (): void => {
    drawn.redraw();
    const heads = edges.slice(1).map((to, i) => `${amount(edges[i] ?? 0, unit, 1)}–${amount(to, unit, 1)} ${name}`);
    fill(numbers, table("Median DAL by source length", ["system", ...heads], state.shown.map((s) => [named(state, s), ...(systems[s] ?? []).map((bin) => amount(bin.quartiles[1], unit))])));
  };
  state.on(["hidden"], draw);
  draw();
  return h(
    "div",
    { id: "by-length" },
    h("h3", {}, "Lag by source length"),
    drawn.element,
    behind(numbers),
    h("p", { class: "quiet small" }, "Median DAL of the segments in bins of about as many segments, each at its median length, systems side by side; bars from the first to the third quartile."),
  );
}

function overTime(state: State): HTMLElement | string {
  const { data } = state;
  const over = data.over_time;
  if (!over) return "";
  const [ms, unit] = [data.unit === "ms", data.unit];
  const name = unitName(unit);
  const minutes = ms && (over.edges.at(-1) ?? 0) > 180_000;
  const clock = minutes ? "min" : ms ? "s" : "tokens";
  const time = (value: number): number => value / (minutes ? 60_000 : ms ? 1000 : 1);
  const drawn = figure("Lag over time", (width) => {
    const points = state.shown.map((s) =>
      (over.systems[s]?.bins ?? []).flatMap((bin, i) => {
        if (!bin) return [];
        const x = time(((over.edges[i] ?? 0) + (over.edges[i + 1] ?? 0)) / 2);
        const title = `${short(data.systems[s]?.name ?? "", 24)}\nafter ${x.toFixed(1)} ${clock}\nmedian ${amount(bin[0], unit)}, p90 ${amount(bin[1], unit)} ${name}`;
        return { s, x, y: scaled(bin[0], unit), high: scaled(bin[1], unit), title };
      }),
    );
    const last = points.flatMap((curve) => curve.at(-1) ?? []);
    return {
      height: Math.max(220, Math.min(340, width * 0.45)),
      marginRight: 60,
      x: { label: `time in the recording (${clock}) →`, grid: true },
      y: { label: `↑ lag of a token (${name})`, grid: true, nice: true },
      marks: [
        ruleY([0], { stroke: "var(--line)" }),
        ...points.map((curve, i) => line(curve, { x: "x", y: "high", stroke: colour(state.shown[i] ?? 0), strokeOpacity: 0.45, strokeWidth: 1 })),
        ...points.map((curve, i) => line(curve, { x: "x", y: "y", stroke: colour(state.shown[i] ?? 0), strokeWidth: 2, strokeDasharray: dash(state.shown[i] ?? 0) })),
        text(last, { x: "x", y: "y", text: () => " median", textAnchor: "start", fill: "var(--quiet)" }),
        text(last, { x: "x", y: "high", text: () => " p90", textAnchor: "start", fill: "var(--quiet)" }),
        tip(points.flat(), pointerX({ x: "x", y: "y", title: "title" })),
      ],
    };
  });
  const drift = ms ? "s/min" : "tokens/100 tokens";
  const numbers = h("div", { class: "tall" });
  const draw = (): void => {
    drawn.redraw();
    const heads = ["system", `from (${clock})`, `median (${name})`, `p90 (${name})`];
    const rows = state.shown.flatMap((s) =>
      (over.systems[s]?.bins ?? []).flatMap((bin, i) => (bin ? [[named(state, s), time(over.edges[i] ?? 0).toFixed(1), amount(bin[0], unit), amount(bin[1], unit)]] : [])),
    );
    fill(numbers, table("Lag over time", heads, rows));
  };
  state.on(["hidden"], draw);
  draw();
  return h(
    "div",
    { id: "over-time" },
    h("h3", {}, "Lag over time"),
    drawn.element,
    behind(numbers),
    table(
      "Drift",
      ["system", `drift (${drift})`],
      over.systems.map((one, s) => [named(state, s), one.reason ? h("span", { class: "quiet" }, one.reason) : h("data", { value: one.drift ?? "", "data-drift": s }, amount(one.drift, ms ? "ms/min" : "token/100"))]),
    ),
    h("p", { class: "quiet small" }, "All recordings together, from their beginnings. Drift: by how much the lag grows, by least squares (LagDrift)."),
  );
}
