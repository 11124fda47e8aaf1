// SPDX-License-Identifier: Apache-2.0
/** Numbers, units and names as the page writes them: as the tables of the command line do. */

import type { Maybe, Metric } from "./types";

const DIGITS: Record<string, number> = { token: 3, ms: 3, "token/100": 3, "ms/min": 3, ratio: 3, count: 2, points: 2, score: 4 };
const UNITS: Record<string, string> = { token: "tokens", ms: "s", "token/100": "tokens/100", "ms/min": "s/min" };

/** A value in the unit that people read: ms as seconds. */
export const scaled = (value: number, unit: string): number => (unit.startsWith("ms") ? value / 1000 : value);

/** A number as tables show it; a dash where there is none. */
export function amount(value: Maybe | undefined, unit: string, digits = DIGITS[unit] ?? 3): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const text = scaled(value, unit).toFixed(digits);
  return (/^-0\.?0*$/.test(text) ? text.slice(1) : text).replace("-", "−");
}

/** The same for programs: a plain minus, and nothing where there is no number. */
export function plain(value: Maybe | undefined, unit: string): string {
  const text = amount(value, unit);
  return text === "–" ? "" : text.replace("−", "-");
}

/** `[1.20, 1.42]`; nothing without an interval. */
export function range(low: Maybe, high: Maybe, unit: string): string {
  return low === null || high === null ? "" : `[${amount(low, unit)}, ${amount(high, unit)}]`;
}

export const unitName = (unit: string): string => UNITS[unit] ?? "";

export const arrow = (higher: boolean | null): string => (higher === null ? "" : higher ? "↑" : "↓");

/** `DAL ↓ s` */
export function heading(metric: Metric): string {
  return [metric.name, arrow(metric.higher), unitName(metric.unit)].filter((part) => part !== "").join(" ");
}

/** `1 segment`, `3 segments` */
export const counted = (n: number, noun: string): string => `${n.toLocaleString("en")} ${noun}${n === 1 ? "" : "s"}`;

/** A name that fits beside a figure. */
export function short(name: string, most = 28): string {
  const letters = [...name.slice(0, 4 * most)];
  return letters.length > most ? `${letters.slice(0, most - 1).join("")}…` : name;
}

/** `1.2 %`; a share that is not nothing is not shown as nothing. */
export function percent(share: number): string {
  if (share > 0 && share < 0.001) return "<\u202f0.1\u202f%";
  return `${(100 * share).toFixed(share < 0.1 ? 1 : 0)}\u202f%`;
}

/** A p-value. */
export const chance = (p: Maybe): string => (p === null ? "–" : p < 0.001 ? "< 0.001" : p.toFixed(3));

/** Colours of the systems, from the theme; with marks and dashes, so that no colour is needed. */
const COLOURS = ["blue", "vermilion", "green", "purple", "orange", "ink"];
const SYMBOLS = ["circle", "square", "triangle", "diamond", "star", "cross", "wye", "times"] as const;
const DASHES = ["none", "6 3", "2 3", "8 3 2 3", "12 4", "4 2 1 2"];

let looks: readonly number[] = [];

/** Has systems look alike that have the same number. */
export function setLooks(numbers: readonly number[]): void {
  looks = numbers;
}

export const look = (system: number): number => looks[system] ?? system;
export const colour = (system: number): string => `var(--${COLOURS[look(system) % COLOURS.length]})`;
export const symbol = (system: number): (typeof SYMBOLS)[number] => SYMBOLS[look(system) % SYMBOLS.length] ?? "circle";
export const dash = (system: number): string => DASHES[look(system) % DASHES.length] ?? "none";
