// SPDX-License-Identifier: Apache-2.0
/** The timeline of a sentence as one drawing, to be saved. */

import { effectiveDelays, ideal } from "../arithmetic";
import { type Picture, reach, ticks } from "../timeline";
import { shown, svg } from "../ui";

const [LEFT, WIDE, ROW, TOP, BOTTOM] = [130, 640, 22, 30, 34];

export function drawing(p: Picture, title: string): SVGSVGElement {
  const end = Math.max(reach(p), p.end ?? 0);
  const scale = p.unit === "ms" ? 1000 : 1;
  const at = (time: number): number => LEFT + (time / end) * WIDE;
  const [want, effective] = [ideal(p, p.cost), effectiveDelays(p, p.cost)];
  const bottom = TOP + ROW * p.delays.length;
  const height = bottom + BOTTOM;
  const line = (x1: number, x2: number, y: number, stroke: string, width = 2) => svg("line", { x1, x2, y1: y, y2: y, stroke, "stroke-width": width });
  const rows = p.delays.flatMap((g, t) => {
    const y = TOP + ROW * (t + 0.5);
    const [i, e, late] = [want[t] ?? NaN, effective[t] ?? NaN, p.elapsed?.[t] ?? NaN];
    const parts: SVGElement[] = [svg("text", { x: LEFT - 10, y: y + 4, "text-anchor": "end", fill: "var(--ink)" }, (p.target?.[t] || String(t + 1)).slice(0, 20))];
    if (Number.isFinite(i)) parts.push(line(at(Math.min(g, i)), at(Math.max(g, i)), y, "var(--blue)"), svg("circle", { cx: at(i), cy: y, r: 2, fill: "var(--ink)" }));
    if (e > g) parts.push(line(at(g), at(e), y, "var(--vermilion)"), svg("circle", { cx: at(e), cy: y, r: 4, fill: "var(--paper)", stroke: "var(--vermilion)", "stroke-width": 2 }));
    if (Number.isFinite(late)) parts.push(svg("rect", { x: at(late) - 3, y: y - 3, width: 6, height: 6, fill: "var(--green)", transform: `rotate(45 ${at(late)} ${y})` }));
    return [...parts, svg("circle", { cx: at(g), cy: y, r: 4.5, fill: "var(--blue)" })];
  });
  const marks = ticks(end / scale, 10, p.unit !== "ms").map((value) =>
    svg("text", { x: at(value * scale), y: bottom + 16, "text-anchor": "middle", fill: "var(--quiet)" }, shown(value, 2)),
  );
  const x = at(p.sourceLength);
  return svg(
    "svg",
    { viewBox: `0 0 ${LEFT + WIDE + 20} ${height}` },
    svg("text", { x: 8, y: 18, fill: "var(--ink)", "font-weight": "bold" }, title),
    svg("line", { x1: x, x2: x, y1: TOP - 4, y2: bottom, stroke: "var(--quiet)", "stroke-dasharray": "3 3" }),
    ...rows,
    ...marks,
    svg("text", { x: LEFT + WIDE, y: bottom + 30, "text-anchor": "end", fill: "var(--quiet)" }, `source time (${p.unit === "ms" ? "s" : "tokens"}); |x| = ${shown(p.sourceLength / scale, 2)}`),
  );
}
