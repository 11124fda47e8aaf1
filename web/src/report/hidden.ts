// SPDX-License-Identifier: Apache-2.0
/** AL against DAL: which systems, and which of their segments, gain because writing is free in AL. */

import { dot, line, pointer, tip } from "@observablehq/plot";
import { fill, h } from "../ui";
import { value } from "./choose";
import { MANY, settings } from "./families";
import { figure } from "./figure";
import { amount, colour, scaled, short, symbol, unitName } from "./format";
import { names } from "./names";
import { named, systemChooser, table } from "./parts";
import type { State } from "./state";

/** So many segments are drawn at most: those with the largest gaps, and an even sample. */
const MOST = 1200;

interface Spot {
  readonly row: number;
  readonly x: number;
  readonly y: number;
}

/** Places of the segments to draw. */
export function spots(al: readonly number[], dal: readonly number[], most = MOST): number[] {
  const there = al.flatMap((a, row) => (Number.isFinite(a) && Number.isFinite(dal[row]) ? [row] : []));
  if (there.length <= most) return there;
  const gap = (row: number): number => (dal[row] ?? 0) - (al[row] ?? 0);
  const worst = [...there].sort((p, q) => gap(q) - gap(p) || p - q).slice(0, most >> 1);
  const kept = new Set(worst);
  const rest = there.filter((row) => !kept.has(row));
  const step = rest.length / (most - worst.length);
  for (let i = 0; i < most - worst.length; i++) kept.add(rest[Math.floor(i * step)] ?? 0);
  return [...kept].sort((p, q) => p - q);
}

export function hidden(body: HTMLElement, state: State): void {
  const { data, choice } = state;
  if (data.unit === "none" || !data.hidden.length) {
    body.append(h("p", { class: "quiet" }, "These logs have no times."));
    return;
  }
  const unit = data.unit;
  const name = unitName(unit);
  const elsewhere = data.health.some((checks) => checks.some((check) => check.key === "undefined: no value in another system"));
  const ends = (points: readonly { readonly x: number; readonly y: number }[]): [number, number] => {
    const all = points.flatMap((p) => [p.x, p.y]);
    return [Math.min(0, ...all), Math.max(...all, 0)];
  };
  const diagonal = ([from, to]: [number, number]) =>
    line([{ x: from, y: from }, { x: to, y: to }], { x: "x", y: "y", stroke: "var(--quiet)", strokeDasharray: "2 3" });

  const labels = data.systems.length > MANY ? settings(data.systems.map((one) => one.name)) : data.systems.map((one) => one.name);
  const systems = figure("DAL against AL, a point per system", (width) => {
    const here = state.shown.flatMap((s) => {
      const one = data.hidden[s];
      if (!one || one.al === null || one.dal === null) return [];
      const title = `${short(data.systems[s]?.name ?? "", 40)}\nAL ${amount(one.al, unit)}, DAL ${amount(one.dal, unit)} ${name}`;
      return { s, x: scaled(one.al, unit), y: scaled(one.dal, unit), name: short(labels[s] ?? "", 20), title };
    });
    const height = Math.max(260, Math.min(380, width * 0.8));
    const [from, to] = ends(here);
    const share = (at: number): number => (at - from) / (to - from || 1);
    const pixels = here.map((d) => ({ x: 52 + share(d.x) * (width - 76), y: height - 40 - share(d.y) * (height - 60) }));
    return {
      height,
      marginRight: 24,
      x: { label: `AL (${name}) →`, grid: true, nice: true },
      y: { label: `↑ DAL (${name})`, grid: true, nice: true },
      symbol: { type: "identity" },
      color: { type: "identity" },
      marks: [
        diagonal(ends(here)),
        dot(here, { x: "x", y: "y", r: 6, symbol: (d: { s: number }) => symbol(d.s), fill: (d: { s: number }) => colour(d.s), stroke: "var(--paper)" }),
        ...names(here, pixels, width),
        tip(here, pointer({ x: "x", y: "y", title: "title" })),
      ],
    };
  });
  const column = (of: string): number[] => data.segments.id.map((_, row) => value(data.segments, choice.a, of, row));
  const segments = figure<Spot>(
    "DAL against AL, a point per segment",
    (width) => {
      const [al, dal] = [column("AL"), column("DAL")];
      const here = spots(al, dal).map((row): Spot => ({ row, x: scaled(al[row] ?? NaN, unit), y: scaled(dal[row] ?? NaN, unit) }));
      const title = (d: Spot): string =>
        `segment ${short(data.segments.id[d.row] ?? "", 30)}\nAL ${d.x.toFixed(2)}, DAL ${d.y.toFixed(2)} ${name}\ngap ${(d.y - d.x).toFixed(2)} ${name}`;
      return {
        height: Math.max(260, Math.min(380, width * 0.8)),
        marginRight: 24,
        x: { label: `AL (${name}) →`, grid: true, nice: true },
        y: { label: `↑ DAL (${name})`, grid: true, nice: true },
        marks: [
          diagonal(ends(here)),
          dot(here, { x: "x", y: "y", r: 2.5, fill: colour(choice.a), fillOpacity: 0.45 }),
          dot(here.filter((d) => d.row === choice.selected), { x: "x", y: "y", r: 6, stroke: "var(--ink)", strokeWidth: 2 }),
          tip(here, pointer({ x: "x", y: "y", title, maxRadius: 30 })),
        ],
      };
    },
    (spot) => {
      state.set({ selected: spot.row });
      document.getElementById("timeline")?.scrollIntoView();
    },
  );
  state.on(["a", "selected"], () => segments.redraw());
  const numbers = h("div", { class: "tall" });
  body.append(
    h("p", {}, "On the dotted line, AL and DAL agree. The further above it, the more a system gains because writing costs nothing in AL: it waits, and then writes much at once."),
    numbers,
    h(
      "div",
      { class: "pair" },
      h("div", {}, h("h3", {}, "Systems"), systems.element),
      h("div", {}, h("div", { class: "tools" }, h("h3", {}, "Segments"), systemChooser(state, "of", "a")), segments.element),
    ),
    h("p", { class: "quiet small" }, `Click a point for its timeline; the numbers of the segments are in their list below.${elsewhere ? " A segment in which one of the systems has no value counts for none in the table." : ""}${data.segments.id.length > MOST ? ` ${MOST} segments are drawn: those with the largest gaps, and an even sample of the others.` : ""}`),
  );
  const draw = (): void =>
    fill(numbers, table(
      "AL and DAL of the systems",
      ["system", `AL (${name})`, `DAL (${name})`, `free writes (${name})`, `after the source (${name})`, "hidden share"],
      state.shown.map((s) => {
        const one = data.hidden[s];
        return [
          named(state, s),
          h("data", { value: one?.al ?? "" }, amount(one?.al, unit)),
          h("data", { value: one?.dal ?? "" }, amount(one?.dal, unit)),
          amount(one?.writes, unit),
          amount(one?.tail, unit),
          h("data", { value: one?.share ?? "", "data-share": s }, amount(one?.share, "ratio")),
        ];
      }),
    ));
  state.on(["hidden"], () => {
    draw();
    systems.redraw();
  });
  draw();
}
