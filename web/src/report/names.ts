// SPDX-License-Identifier: Apache-2.0
/** Names beside points, so that none covers another or a point, and axes on which points have room. */

import { type Markish, text } from "@observablehq/plot";

/** Where a name stands beside its point: to the right or left, above or below. */
export interface Side {
  readonly right: boolean;
  readonly above: boolean;
}

const SIDES: readonly Side[] = [
  { right: true, above: true },
  { right: false, above: true },
  { right: true, above: false },
  { right: false, above: false },
];
/** How wide a letter is, how high a name, how far from its point, and how far a point reaches, in px. */
const [LETTER, LINE, AWAY, POINT] = [6.6, 13, 9, 4];

type Box = [left: number, top: number, right: number, bottom: number];

/** A side for each name on which it covers no other and no point, and stays inside; none where there is no room. Places are in px. */
export function sides(names: readonly { readonly x: number; readonly y: number; readonly letters: number }[], width: number): (Side | undefined)[] {
  const taken = names.map(({ x, y }): Box => [x - POINT, y - POINT, x + POINT, y + POINT]);
  return names.map(({ x, y, letters }) => {
    const box = ({ right, above }: Side): Box => {
      const left = right ? x + AWAY : x - AWAY - letters * LETTER;
      const top = above ? y - AWAY - LINE / 2 : y + AWAY - LINE / 2;
      return [left, top, left + letters * LETTER, top + LINE];
    };
    const free = (b: Box): boolean =>
      b[0] >= 0 && b[2] <= width && taken.every((o) => b[2] < o[0] || o[2] < b[0] || b[3] < o[1] || o[3] < b[1]);
    const side = SIDES.find((one) => free(box(one)));
    if (side) taken.push(box(side));
    return side;
  });
}

/** The marks of the names: `pixels` says where the points are, about. */
export function names<T extends { readonly name: string; readonly x: number; readonly y: number }>(
  points: readonly T[],
  pixels: readonly { readonly x: number; readonly y: number }[],
  width: number,
): Markish[] {
  const side = sides(pixels.map(({ x, y }, i) => ({ x, y, letters: points[i]?.name.length ?? 0 })), width);
  return SIDES.map((one) => {
    const place = { dx: one.right ? AWAY : -AWAY, dy: one.above ? -AWAY : AWAY, textAnchor: one.right ? ("start" as const) : ("end" as const) };
    const some = points.filter((_, i) => side[i] === one);
    return text(some, { x: "x", y: "y", text: "name", ...place, fill: "currentColor", stroke: "var(--paper)", strokeWidth: 3 });
  });
}

/** The ends of an axis, with some room beyond what it shows; of a single value, room on both sides. */
export function spread(low: number, high: number): [number, number] {
  const room = 0.06 * (high - low) || 0.1 * Math.abs(high) || 1;
  return [low - room, high + room];
}
