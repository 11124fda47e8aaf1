// SPDX-License-Identifier: Apache-2.0
/** The port says what Python says: on the tables of the paper, on situations, on random schedules. */

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import * as m from "../src/arithmetic";
import { nameOf, policy, schedule } from "../src/policies";
import vectors from "./vectors.json";

interface Vector {
  delays: number[];
  source_length: number;
  reference_length: number | null;
  write_cost: number | null;
  unit: string;
  scores: Record<string, number | null>;
  dal_at_cost: number | null;
  lags: (number | null)[];
  effective_lags: (number | null)[];
  effective_delays: (number | null)[];
  over_budget: number[];
}

/** Equal to 1e-9; null stands for NaN. */
function same(found: number, expected: number | null | undefined, what: string): void {
  if (expected === null) expect(found, what).toBeNaN();
  else expect(Math.abs(found - (expected ?? NaN)), what).toBeLessThanOrEqual(1e-9 * Math.max(1, Math.abs(found)));
}

function rows(found: number[], expected: (number | null)[], what: string): void {
  expect(found, what).toHaveLength(expected.length);
  expected.forEach((value, t) => same(found[t] ?? NaN, value, `${what}(${t + 1})`));
}

function sentence(v: Pick<Vector, "delays" | "source_length" | "reference_length" | "unit">): m.Sentence {
  return {
    delays: v.delays,
    sourceLength: v.source_length,
    referenceLength: v.reference_length ?? undefined,
    unit: v.unit as m.Unit,
  };
}

function check(v: Vector): void {
  const s = sentence(v);
  const cost = v.write_cost ?? undefined;
  const found = m.scores(s);
  expect(Object.keys(found)).toEqual(Object.keys(v.scores));
  for (const name of m.METRICS) same(found[name], v.scores[name], name);
  same(m.dal(s, cost), v.dal_at_cost, `DAL(write_cost=${v.write_cost})`);
  rows(m.lags(s, cost), v.lags, "ℓ");
  rows(m.effectiveLags(s, cost), v.effective_lags, "ℓ'");
  rows(m.effectiveDelays(s, cost), v.effective_delays, "g'");
  if (v.over_budget.length) expect(m.overBudget(s, cost)).toEqual(v.over_budget);
  // the recurrence of eq. 5 is another way to g'
  const d = cost ?? m.writeCost(s);
  let last = -Infinity;
  if (v.over_budget.length) rows(v.delays.map((g) => (last = Math.max(g, last + d))), v.effective_delays, "g' by eq. 5");
}

describe("vectors from Python", () => {
  for (const [table, systems] of Object.entries(vectors.tables))
    for (const v of systems) test(`Table ${table}, ${v.policy}`, () => check(v));
  for (const [name, v] of Object.entries(vectors.situations)) test(name, () => check(v));
  test("random schedules", () => {
    expect(vectors.random.length).toBeGreaterThanOrEqual(300);
    vectors.random.forEach(check);
  });
});

describe("policies", () => {
  test("do what they do in Python", () => {
    for (const { policy: name, x, y, delays } of vectors.policies) {
      const found = policy(name);
      expect(found, name).toBeDefined();
      if (!found) continue;
      expect(schedule(found, x, y), `${name}, ${x}, ${y}`).toEqual({ delays, sourceLength: x });
      expect(nameOf(found)).toBe(name);
    }
  });
  test.each(["", "wait", "wait-", "wait--1", "wait-1.5", "wait-1-catchup=1", "wait-1-catchup=x", "segment-0", "WAIT-1"])(
    "%j is none",
    (name) => expect(policy(name)).toBeUndefined(),
  );
});

test("what the tables of the paper print", () => {
  const antagonist = { delays: [4, 4, 4, 4, 5], sourceLength: 5 };
  expect(m.lags(antagonist)).toEqual([4, 3, 2, 1, 1]);
  expect(m.effectiveDelays(antagonist)).toEqual([4, 5, 6, 7, 8]);
  expect(m.cutoff({ delays: [3, 4, 4, 4], sourceLength: 4 })).toBe(2);
  expect(m.cutoff({ delays: [1, 2, 3], sourceLength: 6 })).toBe(3);
});

const file = join(process.env["LAGGING_TEST_DATA"] ?? "", "test_vectors.json");
test.skipIf(!existsSync(file))("what papers and other tools print (LAGGING_TEST_DATA)", () => {
  let compared = 0;
  for (const v of JSON.parse(readFileSync(file, "utf8")).sentence_level) {
    if (!v.delays) continue;
    // one of them is in seconds, and one counts on the reference's length in AL
    const found = m.scores(sentence({ ...v, unit: v.unit === "ms" ? "ms" : "token" }));
    for (const name of m.METRICS) {
      const byReference = (name === "AL" || name === "AP") && v.reference_length !== v.delays.length;
      if (typeof v.expected[name] !== "number" || byReference) continue;
      expect(found[name], `${v.name}: ${name}`).toBeCloseTo(v.expected[name], 9);
      compared++;
    }
  }
  expect(compared).toBeGreaterThan(30);
});
