// SPDX-License-Identifier: Apache-2.0
/** From the text in the page back to data, by the browser's own means. */

import type { Clock, Data, Packed } from "./types";

/** Base64 of deflated JSON → what it says. */
export async function unpack(text: string): Promise<Data> {
  const bytes = Uint8Array.from(atob(text.trim()), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return (await new Response(stream).json()) as Data;
}

/** Where the tokens of each segment begin, and where the last one ends. */
export function offsets(tokens: readonly number[]): number[] {
  const out = [0];
  let at = 0;
  for (const n of tokens) out.push((at += n));
  return out;
}

/** When each step is done that writes a token: it starts when its source is there and the step before is done. */
export function queue(delays: readonly number[], late: readonly number[]): number[] {
  let [spent, done] = [0, -Infinity];
  return delays.map((g, t) => {
    const all = Math.max(spent, late[t] ?? 0);
    done = Math.max(g, done) + all - spent;
    spent = all;
    return done;
  });
}

/** The times of one system, segment by segment, undone when they are asked for. */
export class Times {
  private readonly starts: number[];
  private readonly scale: number;

  constructor(private readonly packed: Packed) {
    this.starts = offsets(packed.tokens);
    this.scale = packed.scale ?? 1;
  }

  /** g(t) of the tokens of a segment. */
  delays(row: number): number[] {
    return this.sums(this.packed.delays, row).map((value) => value / this.scale);
  }

  /** When the tokens were there on another clock; undefined where the log does not say. */
  on(clock: Clock, row: number): number[] | undefined {
    if (clock === "ideal" || this.packed[clock] === undefined) return undefined;
    const g = this.delays(row);
    const column = this.packed[clock];
    if (column === "steps") return queue(g, this.sums(this.packed.elapsed, row).map((value) => value / this.scale));
    return this.after(column, row);
  }

  /** When the tokens were first shown; undefined where the log does not say. */
  first(row: number): number[] | undefined {
    return this.packed.first === undefined ? undefined : this.after(this.packed.first, row);
  }

  /** Times that are written as differences from the delays. */
  private after(column: readonly number[] | undefined, row: number): number[] {
    const g = this.delays(row);
    return this.sums(column, row).map((late, t) => late / this.scale + (g[t] ?? NaN));
  }

  private sums(column: readonly number[] | undefined, row: number): number[] {
    let sum = 0;
    return (column ?? []).slice(this.starts[row], this.starts[row + 1]).map((delta) => (sum += delta));
  }
}

/** The target tokens of a text; none if they are not as many as they should be. */
export function words(text: string | null, level: string, n: number): string[] {
  const parts = level === "char" ? [...(text ?? "").replace(/\s/gu, "")] : (text ?? "").split(/\s+/u).filter((w) => w !== "");
  return parts.length === n ? parts : [];
}
