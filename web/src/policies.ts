// SPDX-License-Identifier: Apache-2.0
/** Schedules without a model, under the names of src/lagging/policies.py. (`punctuation` needs a text, and is not here.) */

import type { Schedule } from "./schedule";

export const KINDS = ["wait", "catchup", "rate", "antagonist", "segment", "offline", "prescient"] as const;
export type Kind = (typeof KINDS)[number];

export interface Policy {
  readonly kind: Kind;
  /** k of wait-k, or the length of a segment. */
  readonly k: number;
  /** One write in 1/c comes without a read. */
  readonly c: number;
}

type Delay = (t: number, x: number, y: number, policy: Policy) => number;

const waiting: Delay = (t, x, _, { k }) => Math.min(k + t - 1, x);

/** g(t), t counted from 1. */
const DELAYS: Record<Kind, Delay> = {
  wait: waiting,
  catchup: (t, x, y, { k }) => Math.min(k + Math.floor(((t - 1) * x) / y), x),
  // a product such as 5 × 0.2 must not fall below the whole number that it is
  rate: (t, x, _, { k, c }) => Math.min(Math.max(k + t - 1 - Math.floor(c * t + 1e-9), 0), x),
  antagonist: (t, x, y, policy) => {
    const g = waiting(t, x, y, policy);
    return t < y ? Math.min(g, Math.max(x - 1, 0)) : g;
  },
  segment: (t, x, y, { k }) => Math.min(k * Math.ceil(Math.ceil((t * x) / y) / k), x),
  offline: (_, x) => x,
  prescient: () => 0,
};

/** The name of a policy, as `lagging simulate` takes it. */
export function nameOf({ kind, k, c }: Policy): string {
  if (kind === "catchup") return `wait-${k}-catchup`;
  if (kind === "rate") return `wait-${k}-catchup=${c}`;
  return kind === "offline" || kind === "prescient" ? kind : `${kind}-${k}`;
}

/** The policy of that name; undefined if there is none. */
export function policy(name: string): Policy | undefined {
  if (name === "offline" || name === "prescient") return { kind: name, k: 1, c: 0 };
  const waits = /^wait-(\d{1,4})(?:-(catchup)(?:=(\d*\.?\d+))?)?$/.exec(name);
  if (waits) {
    const [, k, caught, rate] = waits;
    const kind = rate !== undefined ? "rate" : caught !== undefined ? "catchup" : "wait";
    const c = Number(rate ?? 0);
    return c < 1 ? { kind, k: Number(k), c } : undefined;
  }
  const other = /^(antagonist|segment)-(\d{1,4})$/.exec(name);
  if (!other || (other[1] === "segment" && Number(other[2]) < 1)) return undefined;
  return { kind: other[1] as Kind, k: Number(other[2]), c: 0 };
}

/** What a policy does with a sentence of these lengths. */
export function schedule(policy: Policy, x: number, y: number): Schedule {
  const delays = Array.from({ length: y }, (_, t) => DELAYS[policy.kind](t + 1, x, y, policy));
  return { delays, sourceLength: x };
}
