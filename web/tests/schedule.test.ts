// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from "vitest";
import { move, NoAction, parse, resize, write } from "../src/schedule";
import vectors from "./vectors.json";

describe("actions", () => {
  test("are read as `lagging` reads them", () => {
    expect(parse("RRRRWWWWRW")).toEqual({ delays: [4, 4, 4, 4, 5], sourceLength: 5 });
    expect(parse(" r r W\tw\r\n")).toEqual({ delays: [2, 2], sourceLength: 2 });
    expect(parse("RWRWRWRRR")).toEqual({ delays: [1, 2, 3], sourceLength: 6 });
    expect(parse("")).toEqual({ delays: [], sourceLength: 0 });
  });
  test("are written as they were read", () => {
    for (const text of ["", "R", "W", "RRRRWWWWRW", "RWRWRWRRR", "WWRR"]) expect(write(parse(text))).toBe(text);
    for (const v of vectors.policies) {
      const one = { delays: v.delays, sourceLength: v.x };
      expect(parse(write(one))).toEqual(one);
    }
  });
  test("other characters are named with their place", () => {
    for (const [text, character, column] of [["RRxW", "x", 3], ["R😀", "😀", 2], ["<b>", "<", 1]] as const)
      try {
        parse(text);
        expect.unreachable();
      } catch (error) {
        expect(error).toBeInstanceOf(NoAction);
        expect(error).toMatchObject({ character, column });
      }
  });
});

describe("by hand", () => {
  const wait4 = parse("RRRRWRWWWW");
  test("a token takes its neighbours along, so that nothing is unread", () => {
    expect(move(wait4, 1, 2).delays).toEqual([2, 2, 5, 5, 5]);
    expect(move(wait4, 3, 4).delays).toEqual([4, 4, 4, 4, 5]);
    expect(move(parse("RWRWRW"), 0, 3).delays).toEqual([3, 3, 3]);
  });
  test("and stays inside the source", () => {
    expect(move(wait4, 0, -3).delays[0]).toBe(0);
    expect(move(wait4, 0, 99).delays).toEqual([5, 5, 5, 5, 5]);
    expect(move(wait4, 0, 2.4).delays[0]).toBe(2);
  });
  test("lengths change at the end", () => {
    expect(resize(wait4, 5, 7).delays).toEqual([4, 5, 5, 5, 5, 5, 5]);
    expect(resize(wait4, 3, 2)).toEqual({ delays: [3, 3], sourceLength: 3 });
    expect(resize(wait4, 9, 5)).toEqual({ delays: [4, 5, 5, 5, 5], sourceLength: 9 });
    expect(resize(parse("RR"), 2, 2).delays).toEqual([0, 0]);
  });
});
