// SPDX-License-Identifier: Apache-2.0
/** What src/lagging/reporting writes: numbers are in the unit of the log, null where there is none. */

export type Maybe = number | null;
export type Clock = "ideal" | "elapsed" | "queue";
export type LogUnit = "ms" | "token" | "none";

export interface About {
  readonly name: string;
  readonly unit: LogUnit;
  readonly level: string;
  readonly noun: string;
  readonly seg: string;
  readonly segments: number;
  readonly tokens: number;
  readonly origin: string;
  readonly clocks: readonly Clock[];
  readonly notes: readonly { readonly said: string }[];
  /** Sound, suspicious or degenerate, and why; null without times. */
  readonly verdict: { readonly word: string; readonly reasons: readonly string[] } | null;
}

export interface Metric {
  readonly name: string;
  readonly unit: string;
  readonly higher: boolean | null;
  readonly summary: string;
  readonly formula: string;
}

export interface Check {
  readonly key: string;
  readonly title: string;
  readonly help: string;
  readonly count: Maybe;
  readonly noun: string;
  readonly value: Maybe;
  readonly unit: string;
  readonly bad: boolean;
  readonly rows: readonly number[];
  readonly ids: readonly string[];
}

export interface Point {
  readonly value: Maybe;
  readonly low: Maybe;
  readonly high: Maybe;
  readonly signature: string;
}

export interface Score extends Point {
  readonly undefined: number;
  readonly mark: string;
}

export interface Pair {
  readonly metric: string;
  readonly a: number;
  readonly b: number;
  readonly difference: Maybe;
  readonly low: Maybe;
  readonly high: Maybe;
  readonly p: Maybe;
  readonly p_adjusted: Maybe;
  readonly verdict: string;
}

export interface Compared {
  readonly n: number;
  readonly base: string | null;
  readonly alpha: number;
  readonly level: number;
  readonly how: string;
  readonly key: string;
  readonly summary: readonly string[];
  readonly signature: string | null;
  readonly notes: readonly string[];
  /** Per system, per metric. */
  readonly scores: readonly (readonly Score[])[];
  readonly pairs: readonly Pair[];
}

export interface Regime {
  readonly name: string;
  readonly metric: string;
  readonly limits: readonly (readonly [string, number])[];
  readonly source: string;
}

export interface Tradeoff {
  readonly clocks: readonly Clock[];
  readonly latency: readonly string[];
  readonly quality: readonly string[];
  readonly points: { readonly [clock: string]: { readonly [metric: string]: readonly Point[] } };
  readonly regimes: readonly Regime[];
}

export interface Hidden {
  readonly al: Maybe;
  readonly dal: Maybe;
  readonly writes: Maybe;
  readonly tail: Maybe;
  readonly share: Maybe;
}

export interface Shares {
  readonly grid: readonly number[];
  readonly percentiles: readonly number[];
  readonly systems: readonly { readonly n: number; readonly share: readonly number[]; readonly percentiles: readonly Maybe[] }[];
}

export interface Lengths {
  readonly edges: readonly number[];
  readonly middles: readonly number[];
  readonly systems: readonly (readonly { readonly n: number; readonly quartiles: readonly Maybe[] }[])[];
}

export interface OverTime {
  readonly edges: readonly number[];
  readonly systems: readonly {
    readonly bins?: readonly (readonly [number, number] | null)[];
    readonly drift?: Maybe;
    readonly reason?: string;
  }[];
}

/** Columns of one system, as they are written: see src/lagging/render/report/segments.py. */
export interface Packed {
  readonly prediction: readonly (string | null)[] | null;
  readonly pieces: readonly (readonly string[])[] | null;
  readonly tokens: readonly number[];
  readonly scale?: number;
  readonly x?: readonly Maybe[];
  readonly delays?: readonly number[];
  readonly elapsed?: readonly number[];
  readonly queue?: readonly number[] | "steps";
  readonly first?: readonly number[];
  readonly values: { readonly [metric: string]: readonly Maybe[] };
}

export interface Segments {
  readonly total: number;
  readonly note: string;
  readonly id: readonly string[];
  readonly document: readonly (string | null)[] | null;
  readonly source: readonly (string | null)[] | null;
  /** The file of sound of each segment, where its segment begins in it, in ms, and how long it is. */
  readonly recording: readonly (string | null)[] | null;
  readonly offset: readonly Maybe[] | null;
  /** Where each recording lies, as seen from the page, if its sound was given. */
  readonly sound: { readonly [recording: string]: string };
  readonly reference: readonly (string | null)[] | null;
  readonly systems: readonly Packed[];
}

export interface Data {
  readonly schema: number;
  readonly version: string;
  readonly title: string;
  readonly unit: LogUnit;
  readonly systems: readonly About[];
  readonly metrics: readonly Metric[];
  readonly health: readonly (readonly Check[])[];
  readonly comparison: Compared;
  readonly tradeoff: Tradeoff;
  readonly hidden: readonly Hidden[];
  readonly distribution: { readonly [clock: string]: { readonly token: Shares; readonly segment: Shares } };
  readonly by_length: Lengths;
  readonly over_time: OverTime | null;
  readonly segments: Segments;
}
