// SPDX-License-Identifier: Apache-2.0
/** The state of the playground in its address, its presets, and what it says of a schedule. */

import { describe, expect, test } from "vitest";
import { METRICS, scores } from "../src/arithmetic";
import { type State, decode, DEAREST, encode, FIRST, MOST, preset, PRESETS, system } from "../playground/state";
import { MEANING, ORDER, reason, remarks } from "../playground/words";
import vectors from "./vectors.json";

const first = preset(PRESETS[FIRST] as (typeof PRESETS)[number]);

/** Numbers without a bias that matters, the same every time. */
function* dice(seed: number): Generator<number, never> {
  for (let a = seed; ; ) {
    a = (Math.imul(a, 1664525) + 1013904223) >>> 0;
    yield a / 2 ** 32;
  }
}

describe("presets", () => {
  test("are the tables of the paper, with Python's numbers", () => {
    expect(PRESETS.map(({ name }) => name)).toEqual(Object.keys(vectors.tables).map((n) => `Table ${n}`));
    PRESETS.forEach((table, i) => {
      const systems = Object.values(vectors.tables)[i] ?? [];
      expect(table.systems).toEqual(systems.map(({ policy, x, y }) => [policy, x, y]));
      preset(table).systems.forEach(({ schedule }, place) => {
        const found = scores(schedule);
        for (const name of METRICS) expect(found[name]).toBeCloseTo(systems[place]?.scores[name] ?? NaN, 9);
      });
    });
  });
});

describe("address", () => {
  const addresses = [
    "a=wait-4:5:5&b=antagonist-4:5:5",
    "a=RRRRWWWWRW",
    "a=RWRWRWRRR&d=0&r=9",
    "a=wait-3-catchup=0.25:7:9&b=segment-2:8:8&d=1.35&r=4",
    "a=&b=WW",
  ];
  test.each(addresses)("%s stays what it is", (address) => {
    const { state, faults } = decode(`#${address}`);
    expect(faults).toEqual([]);
    expect(encode(state)).toBe(address);
    expect(decode(encode(state)).state).toEqual(state);
  });
  test("says nothing: how AL is gamed", () => {
    for (const nothing of ["", "#"]) expect(decode(nothing)).toEqual({ state: { ...first, cost: undefined, reference: undefined }, faults: [] });
  });
  test("as other programs quote it", () => {
    expect(decode("#a=wait-4%3A5%3A5&d=0.50").state).toEqual(decode("a=wait-4:5:5&d=0.5").state);
    expect(decode("a=R+R+W").state.systems[0]?.schedule.delays).toEqual([2]);
  });
  test.each([
    ["a=RRxW", '"x" at place 3'],
    ["a=<script>alert(1)</script>", '"<" at place 1'],
    ["a=wait-3:0:5", "a length must be"],
    ["a=wait-3:5:999", "a length must be"],
    ["a=wait-3:2.5:5", "a length must be"],
    ["a=nothing:5:5", "no policy"],
    [`a=${"RW".repeat(MOST + 1)}`, "at most"],
    [`a=${"R".repeat(100_000)}`, "at most"],
    ["a=%E0%A4%A", "not readable"],
    ["d=-1", "the write cost"],
    ["d=1e999", "the write cost"],
    [`d=${DEAREST + 1}`, "the write cost"],
    ["r=NaN", "the length of the reference"],
    ["__proto__=1", "means nothing"],
    ["constructor", "means nothing"],
  ])("garbage is named, and something is shown: %s", (address, fault) => {
    const { state, faults } = decode(address);
    expect(faults.join()).toContain(fault);
    expect(state.systems).toEqual(first.systems);
    expect([state.cost, state.reference]).toEqual([undefined, undefined]);
  });
  test("what is right beside garbage is kept", () => {
    const { state, faults } = decode("a=?&b=offline:3:3&d=x&r=2");
    expect(faults).toHaveLength(2);
    expect(encode(state)).toBe("a=offline:3:3&r=2");
  });
  test("anything at all", () => {
    const next = dice(7);
    const letters = "abdr=&:%RWrw0123456789.-+ #\0\u2028<>\"'wait-catchup\ud83d\u05d0";
    for (let i = 0; i < 5000; i++) {
      const length = Math.floor(next.next().value * 40);
      let text = "";
      for (let n = 0; n < length; n++) text += letters[Math.floor(next.next().value * letters.length)] ?? "";
      const { state } = decode(text);
      expect(state.systems.length).toBeGreaterThan(0);
      expect(decode(encode(state)).state).toEqual(state); // what is shown can be shared
    }
  });
});

describe("words", () => {
  test("every metric has some", () => {
    expect([...ORDER].sort()).toEqual([...METRICS, "cost"].sort());
    expect(Object.keys(MEANING).sort()).toEqual([...ORDER].sort());
  });
  const said = (actions: string): string => remarks(system(actions).schedule).join(" ");
  test("what is to be seen in the tables", () => {
    expect(said("antagonist-4:5:5")).toBe(
      "AL is 1.8 below DAL: up to τ = 5, 3 tokens are written without a read, and AL takes that for speaking in no time.",
    );
    expect(said("wait-4:5:5")).toBe(
      "AL and DAL agree on 4. The source has been read at τ = 2; AL does not look at the 3 tokens after it.",
    );
    expect(said("wait-1:6:3")).toContain("1 token comes before the ideal translator’s");
    expect(said("wait-1:6:3")).toContain("never read to its end");
    expect(said("wait-1:3:6")).toContain("a lag, once there, stays");
    expect(said("offline:4:4")).toContain("offline translation");
  });
  test("nothing is said of nothing", () => {
    expect(said("")).toContain("Nothing is written");
    expect(said("RR")).toContain("Nothing is written");
    expect(said("WW")).toContain("Nothing is to be read");
  });
  test("why there is no value", () => {
    const why = (actions: string, name: (typeof ORDER)[number]): string => reason(name, system(actions).schedule);
    expect(why("RR", "AL")).toBe("nothing is written");
    expect(why("WW", "AL")).toBe("there is no source");
    expect(why("prescient:3:3", "CW")).toBe("nothing is read");
    expect(why("offline:3:3", "YAAL")).toBe("nothing is written before the source ends");
  });
  test("the numbers that are said are the numbers that are shown", () => {
    const state: State = { systems: vectors.policies.map(({ policy, x, y }) => system(`${policy}:${x}:${y}`)) };
    for (const { schedule } of state.systems) {
      const { AL, DAL } = scores(schedule);
      const text = remarks(schedule).join(" ");
      expect(/agree/.test(text), text).toBe(Math.abs(DAL - AL) < 1e-9);
    }
  });
});
