// SPDX-License-Identifier: Apache-2.0
/** What the reader has chosen; sections listen, and change with it. */

import type { Clock, Data } from "./types";

export interface Choice {
  /** The system looked at, and the one it is held against. */
  a: number;
  b: number;
  clock: Clock;
  /** The metric of the list of segments. */
  metric: string;
  /** The segment whose timeline is shown; undefined where there are none. */
  selected: number | undefined;
  /** Systems that are left out of tables and figures. */
  hidden: ReadonlySet<number>;
  /** Only these segments, because of what is said of them. */
  only: { readonly why: string; readonly rows: ReadonlySet<number> } | undefined;
}

export class State {
  private readonly listeners: ((changed: Partial<Choice>) => void)[] = [];
  readonly choice: Choice;

  constructor(readonly data: Data) {
    const timed = data.metrics.filter((m) => m.unit === "ms" || m.unit === "token").map((m) => m.name);
    this.choice = {
      a: 0,
      b: Math.min(1, data.systems.length - 1),
      clock: "ideal",
      metric: timed.includes("DAL") ? "DAL" : (timed[0] ?? data.metrics[0]?.name ?? ""),
      selected: data.segments.id.length ? 0 : undefined,
      hidden: new Set(),
      only: undefined,
    };
  }

  /** Places of the systems that are shown. */
  get shown(): number[] {
    return this.data.systems.flatMap((_, s) => (this.choice.hidden.has(s) ? [] : [s]));
  }

  set(changed: Partial<Choice>): void {
    Object.assign(this.choice, changed);
    for (const listener of this.listeners) listener(changed);
  }

  /** Calls back when one of these changes. */
  on(names: readonly (keyof Choice)[], callback: () => void): void {
    this.listeners.push((changed) => {
      if (names.some((name) => name in changed)) callback();
    });
  }
}
