// SPDX-License-Identifier: Apache-2.0
/** Schedules: READ/WRITE strings such as RRRRWRWWWW, and how a hand changes them. */

export interface Schedule {
  /** g(t), in source tokens. */
  readonly delays: readonly number[];
  /** |x| */
  readonly sourceLength: number;
}

/** A character that is no action, and where it stands, from 1. */
export class NoAction extends Error {
  constructor(
    readonly character: string,
    readonly column: number,
  ) {
    super(`${JSON.stringify(character)} at place ${column} is neither R (read) nor W (write)`);
  }
}

/**
 * The schedule that a string of actions stands for. Spaces and case play no part. The source length is the number of
 * reads, so a source that is not read to its end ends in reads without a write.
 */
export function parse(text: string): Schedule {
  const delays: number[] = [];
  let [read, column] = [0, 0];
  for (const character of text) {
    column++;
    if (/[Rr]/.test(character)) read++;
    else if (/[Ww]/.test(character)) delays.push(read);
    else if (!/[ \t\r\n]/.test(character)) throw new NoAction(character, column);
  }
  return { delays, sourceLength: read };
}

/** The string of actions of a schedule. */
export function write({ delays, sourceLength }: Schedule): string {
  let [text, read] = ["", 0];
  for (const g of delays) {
    text += "R".repeat(g - read) + "W";
    read = g;
  }
  return text + "R".repeat(sourceLength - read);
}

/** Token t (from 0) is written after g reads; those before it are no later, those after it no sooner. */
export function move({ delays, sourceLength }: Schedule, t: number, g: number): Schedule {
  const to = Math.min(Math.max(Math.round(g), 0), sourceLength);
  return { delays: delays.map((d, i) => (i < t ? Math.min(d, to) : i > t ? Math.max(d, to) : to)), sourceLength };
}

/** Other lengths: new tokens are written with the last one, and nothing is read beyond the source. */
export function resize({ delays }: Schedule, x: number, y: number): Schedule {
  const last = delays.at(-1) ?? 0;
  const resized = Array.from({ length: y }, (_, t) => Math.min(delays[t] ?? last, x));
  return { delays: resized, sourceLength: x };
}
