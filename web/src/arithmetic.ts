// SPDX-License-Identifier: Apache-2.0
/**
 * The metrics of one sentence: a small port of src/lagging/metrics, in the paper's notation (Cherry & Foster 2019).
 *
 * tests/vectors.json holds what the Python functions of the same names say; both must agree. Undefined is NaN.
 */

export type Unit = "token" | "ms";

export interface Sentence {
  /** g(t): source read before target token t, in tokens or ms; never falls. */
  readonly delays: readonly number[];
  /** |x| */
  readonly sourceLength: number;
  /** |y*|, for LAAL and YAAL; without it they take |y|. */
  readonly referenceLength?: number | undefined;
  /** "ms": a delay within 1 ms of |x| counts as its end, and ATD cuts speech into pieces. */
  readonly unit?: Unit;
}

export const METRICS = ["AP", "CW", "AL", "AL_y", "LAAL", "DAL", "ATD", "YAAL"] as const;
export type Name = (typeof METRICS)[number];

/** How many ms of speech are a token of ATD, and which part of a token is a rounding error. */
const PIECE = 300;
const NOISE = 1e-9;

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);
const mean = (values: readonly number[]): number => sum(values) / values.length;
const defined = ({ delays, sourceLength }: Sentence): boolean => delays.length > 0 && sourceLength > 0;
const longest = ({ delays, referenceLength }: Sentence): number => Math.max(delays.length, referenceLength ?? 0);

/** d = 1/γ = |x|/|y|: what writing one token costs if nothing else is said. */
export const writeCost = ({ delays, sourceLength }: Sentence): number => sourceLength / delays.length;

/** CW(t) = g(t) − g(t−1), with g(0) = 0. */
export const waits = (delays: readonly number[]): number[] => delays.map((g, t) => g - (delays[t - 1] ?? 0));

/** (t−1)d: when the ideal translator writes. */
export function ideal(s: Sentence, cost?: number): number[] {
  return s.delays.map((_, t) => (cost === undefined ? (t * s.sourceLength) / s.delays.length : t * cost));
}

/** ℓ(t) = g(t) − (t−1)d, with d = |x|/|y| unless `cost` is given; one rounding, so that equal lags are equal. */
export function lags(s: Sentence, cost?: number, y: number = s.delays.length): number[] {
  if (!defined(s)) return s.delays.map(() => NaN);
  return s.delays.map((g, t) => (cost === undefined ? (g * y - t * s.sourceLength) / y : g - t * cost));
}

/** ℓ'(t) = max over i ≤ t of ℓ(i): the lag of g'. */
export function effectiveLags(s: Sentence, cost?: number): number[] {
  let most = -Infinity;
  return lags(s, cost).map((lag) => (most = Math.max(most, lag)));
}

/** g'(t) = (t−1)d + ℓ'(t) = max{g(t), g'(t−1) + d}: when a token is there once every write has taken its time. */
export function effectiveDelays(s: Sentence, cost?: number): number[] {
  const d = cost ?? writeCost(s);
  return effectiveLags(s, cost).map((lag, t) => t * d + lag);
}

/** Which i ≤ t (from 0) went most over budget: the read that g'(t) comes from; the first of equals. */
export function overBudget(s: Sentence, cost?: number): number[] {
  let [most, which] = [-Infinity, 0];
  return lags(s, cost).map((lag, t) => {
    if (lag > most) [most, which] = [lag, t];
    return which;
  });
}

/** How many leading tokens were written before the source ended. */
function leading({ delays, sourceLength, unit }: Sentence): number {
  const reach = sourceLength - (unit === "ms" ? 1 : 0);
  const past = delays.findIndex((g) => !(g < reach));
  return past < 0 ? delays.length : past;
}

/** τ: the first t (from 1) with g(t) ≥ |x|; |y| if the source is never fully read. */
export const cutoff = (s: Sentence): number => Math.min(leading(s) + 1, s.delays.length);

/** Σ g(t) / (|x|·|y|) */
export const ap = (s: Sentence): number =>
  defined(s) ? sum(s.delays) / (s.sourceLength * s.delays.length) : NaN;

/** Source read ÷ number of runs of reads. */
export const cw = (s: Sentence): number =>
  defined(s) ? (s.delays.at(-1) ?? NaN) / waits(s.delays).filter((wait) => wait > 0).length : NaN;

/** The mean of ℓ(t) over t ≤ τ. */
export const al = (s: Sentence): number => mean(lags(s).slice(0, cutoff(s)));

/** The mean of ℓ(t) over all t. */
export const alY = (s: Sentence): number => mean(lags(s));

/** AL with γ = max(|y|, |y*|)/|x|. */
export const laal = (s: Sentence): number => mean(lags(s, undefined, longest(s)).slice(0, cutoff(s)));

/** LAAL over the tokens written before the source ended; undefined if there is none. */
export const yaal = (s: Sentence): number => mean(lags(s, undefined, longest(s)).slice(0, leading(s)));

/** The mean of ℓ'(t): every write is charged d. */
export const dal = (s: Sentence, cost?: number): number => mean(effectiveLags(s, cost));

/**
 * The mean of T(y_t) − T(x_a(t)): how long after its source token each target token ends.
 *
 * Text: every token lasts 1. Speech: the new sound of each chunk is cut into pieces of 300 ms, and text lasts 0.
 */
export function atd(s: Sentence): number {
  if (!defined(s)) return NaN;
  const [piece, lasts] = s.unit === "ms" ? [PIECE, 0] : [1, 1];
  const ends = [0]; // T(x_a), when source token a ends; nothing read: when the segment begins
  let [read, known, said, out, total] = [0, 0, 0, -Infinity, 0];
  for (const [t, delay] of s.delays.entries()) {
    const g = Math.max(delay, 0);
    const tokens = Math.ceil(Math.max((g - read) / piece - NOISE, 0));
    if (tokens > 0) {
      [known, said] = [ends.length - 1, t]; // source and target tokens before this chunk
      for (let n = 1; n <= tokens; n++) ends.push(Math.min(read + piece * n, g));
    }
    read = g;
    const a = Math.min(t + 1 - Math.max(said - known, 0), ends.length - 1);
    out = Math.max(out, delay) + lasts;
    total += out - (ends[a] ?? NaN);
  }
  return total / s.delays.length;
}

/** Every metric of a sentence, by name. */
export function scores(s: Sentence): Record<Name, number> {
  return {
    AP: ap(s),
    CW: cw(s),
    AL: al(s),
    AL_y: alY(s),
    LAAL: laal(s),
    DAL: dal(s),
    ATD: atd(s),
    YAAL: yaal(s),
  };
}
