// SPDX-License-Identifier: Apache-2.0
/** Which segments the list has, and in which order. */

import type { Maybe, Segments } from "./types";

export type Order = "log" | "value" | "difference" | "gap" | "length";

export interface Wish {
  /** The systems that are looked at: places. */
  readonly a: number;
  readonly b: number;
  readonly metric: string;
  readonly order: Order;
  readonly descending: boolean;
  /** Only these, if given. */
  readonly only?: ReadonlySet<number> | undefined;
  readonly document?: string | undefined;
  readonly search: string;
}

const number = (value: Maybe | undefined): number => value ?? NaN;

/** The value of a metric in a segment. */
export function value(segments: Segments, system: number, metric: string, row: number): number {
  return number(segments.systems[system]?.values[metric]?.[row]);
}

/** What segments are ordered by. */
export function key(segments: Segments, wish: Wish, row: number): number {
  switch (wish.order) {
    case "log":
      return row;
    case "value":
      return value(segments, wish.a, wish.metric, row);
    case "difference":
      return Math.abs(value(segments, wish.a, wish.metric, row) - value(segments, wish.b, wish.metric, row));
    case "gap":
      return value(segments, wish.a, "DAL", row) - value(segments, wish.a, "AL", row);
    case "length":
      return number(segments.systems[wish.a]?.x?.[row]);
  }
}

/** All texts of a segment, to search in. */
export function texts(segments: Segments, row: number): string[] {
  const of = [
    segments.id[row],
    segments.document?.[row],
    segments.source?.[row],
    segments.reference?.[row],
    ...segments.systems.map((system) => system.prediction?.[row]),
  ];
  return of.filter((text): text is string => typeof text === "string");
}

/** The segments that are wished for, in order; those without a value come last. */
export function choose(segments: Segments, wish: Wish): number[] {
  const wanted = wish.search.normalize("NFC").toLocaleLowerCase().trim();
  const rows: number[] = [];
  for (let row = 0; row < segments.id.length; row++) {
    if (wish.only && !wish.only.has(row)) continue;
    if (wish.document !== undefined && segments.document?.[row] !== wish.document) continue;
    if (wanted && !texts(segments, row).some((text) => text.normalize("NFC").toLocaleLowerCase().includes(wanted))) continue;
    rows.push(row);
  }
  if (wish.order === "log") return wish.descending ? rows.reverse() : rows;
  const keys = new Map(rows.map((row) => [row, key(segments, wish, row)]));
  const sign = wish.descending ? -1 : 1;
  return rows.sort((one, other) => {
    const [p, q] = [keys.get(one) ?? NaN, keys.get(other) ?? NaN];
    if (Number.isNaN(p) || Number.isNaN(q)) return Number(Number.isNaN(p)) - Number(Number.isNaN(q)) || one - other;
    return sign * (p - q) || one - other;
  });
}
