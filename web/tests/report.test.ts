// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from "vitest";
import { choose, type Wish } from "../src/report/choose";
import { best, csv, field, latex, tex } from "../src/report/export";
import { families, looks, settings } from "../src/report/families";
import { amount, chance, counted, percent, range, short } from "../src/report/format";
import { clean, joined } from "../src/report/health";
import { spots } from "../src/report/hidden";
import { sides, spread } from "../src/report/names";
import { reads, spoken } from "../src/report/sentence";
import type { Check, Compared, Metric, Packed, Segments } from "../src/report/types";
import { Times, offsets, queue, unpack, words } from "../src/report/unpack";

const packed: Packed = {
  prediction: ["a b c", "", "d e"],
  pieces: null,
  tokens: [3, 0, 2],
  scale: 1,
  x: [3000, 1000, 2000],
  delays: [1000, 500, 0, 400, 1600],
  elapsed: [40, 20, 0, 10, 600],
  queue: "steps",
  values: { AL: [1, null, 5], DAL: [4, null, 6] },
};

test("data comes back as it was packed", async () => {
  const data = { schema: 1, title: "</script>\u2028😀\u0000" };
  const stream = new Blob([JSON.stringify(data)]).stream().pipeThrough(new CompressionStream("deflate"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  expect(await unpack(`\n${btoa(String.fromCharCode(...bytes))}\n`)).toEqual(data);
});

describe("times", () => {
  const times = new Times(packed);

  test("are sums of their differences, segment by segment", () => {
    expect(offsets([3, 0, 2])).toEqual([0, 3, 3, 5]);
    expect([0, 1, 2].map((row) => times.delays(row))).toEqual([[1000, 1500, 1500], [], [400, 2000]]);
    expect(times.on("elapsed", 0)).toEqual([1040, 1560, 1560]);
    expect(times.on("ideal", 0)).toBeUndefined();
  });

  test("on the queue clock follow from delays and computing", () => {
    expect(times.on("queue", 2)).toEqual([410, 2600]);
    // the second step waits for the first: 500 + 700, then 300 more
    expect(queue([500, 600, 600, 5000], [700, 1000, 1000, 1100])).toEqual([1200, 1500, 1500, 5100]);
  });

  test("of the first showing are differences from the delays", () => {
    expect(times.first(0)).toBeUndefined();
    expect(new Times({ ...packed, first: [0, -500, 500, -100, -900] }).first(2)).toEqual([300, 1000]);
  });

  test("that are no whole tokens are thousandths", () => {
    expect(new Times({ ...packed, scale: 1000, delays: [1500, 0, 0, 0, 250] }).delays(2)).toEqual([0, 0.25]);
  });
});

test("tokens of a text are its words or letters, if there are as many as there should be", () => {
  expect(words(" a  b\u00a0c\n", "word", 3)).toEqual(["a", "b", "c"]);
  expect(words("我 看😀", "char", 3)).toEqual(["我", "看", "😀"]);
  expect(words("a b", "word", 3)).toEqual([]);
  expect(words(null, "word", 0)).toEqual([]);
});

test("numbers are written as the tables of the command line do", () => {
  expect([amount(1234.5, "ms"), amount(-0.0001, "token"), amount(-2, "points"), amount(null, "ms")]).toEqual(["1.234", "0.000", "−2.00", "–"]);
  expect(range(1000, 2500, "ms")).toBe("[1.000, 2.500]");
  expect(range(null, null, "ms")).toBe("");
  expect([counted(1, "segment"), counted(2588, "segment")]).toEqual(["1 segment", "2,588 segments"]);
  expect([percent(0), percent(0.0001), percent(0.052), percent(0.5)]).toEqual(["0.0\u202f%", "<\u202f0.1\u202f%", "5.2\u202f%", "50\u202f%"]);
  expect([chance(0.00001), chance(0.25), chance(null)]).toEqual(["< 0.001", "0.250", "–"]);
  expect(short("😀".repeat(50), 10)).toBe(`${"😀".repeat(9)}…`);
});

describe("segments", () => {
  const segments: Segments = {
    total: 3,
    note: "",
    id: ["x", "y", "z"],
    document: ["one", "two", "two"],
    recording: null,
    offset: null,
    sound: {},
    source: null,
    reference: ["Ein Haus", "Straße", null],
    systems: [packed, { ...packed, prediction: ["q", "r", "s"], values: { AL: [2, 3, 4], DAL: [9, 3, 4] } }],
  };
  const wish: Wish = { a: 0, b: 1, metric: "DAL", order: "log", descending: false, search: "" };
  const chosen = (more: Partial<Wish>): string[] => choose(segments, { ...wish, ...more }).map((row) => segments.id[row] ?? "");

  test("are put in order, those without a value last", () => {
    expect(chosen({})).toEqual(["x", "y", "z"]);
    expect(chosen({ descending: true })).toEqual(["z", "y", "x"]);
    expect(chosen({ order: "value", descending: true })).toEqual(["z", "x", "y"]);
    expect(chosen({ order: "value" })).toEqual(["x", "z", "y"]);
    expect(chosen({ order: "difference", descending: true })).toEqual(["x", "z", "y"]);
    expect(chosen({ order: "gap", descending: true })).toEqual(["x", "z", "y"]);
    expect(chosen({ order: "length" })).toEqual(["y", "z", "x"]);
  });

  test("are found by their text, id, document, and by what was said of them", () => {
    expect(chosen({ search: "STRASSE" })).toEqual([]);
    expect(chosen({ search: "haus" })).toEqual(["x"]);
    expect(chosen({ search: " s " })).toEqual(["x", "y", "z"]);
    expect(chosen({ search: "two", document: "two" })).toEqual(["y", "z"]);
    expect(chosen({ only: new Set([2]) })).toEqual(["z"]);
    expect(chosen({ search: "no such text" })).toEqual([]);
  });
});

describe("copies", () => {
  const metrics: Metric[] = [
    { name: "DAL", unit: "ms", higher: false, summary: "", formula: "" },
    { name: "BLEU", unit: "points", higher: true, summary: "", formula: "" },
  ];
  const one = { low: 1000, high: 1500, undefined: 0, mark: "a", signature: "DAL|n:2" };
  const compared = {
    n: 2,
    how: "by hand",
    signature: "pairs|n:2",
    scores: [
      [{ ...one, value: 1234.5678 }, { ...one, value: 20, low: null, high: null, mark: "", signature: "BLEU|n:2" }],
      [{ ...one, value: 1500, mark: "b" }, { ...one, value: null, low: null, high: null, mark: "", signature: "BLEU|n:2" }],
    ],
  } as unknown as Compared;
  const names = ["a_b & {c}\\", "=1+1"];
  const shown = { names, metrics, compared, rows: [1, 0], columns: [0, 1] };

  test("as LaTeX: escaped, best in bold, signatures as comments", () => {
    expect(tex("50% of $x_1^2\u2028\u0000#~")).toBe("50\\% of \\$x\\_1\\textasciicircum{}2 \\#\\textasciitilde{}");
    const text = latex(shown);
    expect(text).toContain("a\\_b \\& \\{c\\}\\textbackslash{} & \\textbf{1.235}$^{a}$ {\\small [1.000, 1.500]} & \\textbf{20.00} \\\\");
    expect(text).toContain("=1+1 & 1.500$^{b}$ {\\small [1.000, 1.500]} & -- \\\\");
    expect(text).toContain("% DAL|n:2\n");
    expect(text).toContain("system & DAL $\\downarrow$ (s) & BLEU $\\uparrow$ \\\\");
    expect(text.indexOf("=1+1")).toBeLessThan(text.indexOf("a\\_b"));
    expect(latex({ ...shown, columns: [0] })).not.toContain("BLEU");
  });

  test("as CSV: all digits, quoted, no formulas", () => {
    expect([field("a"), field('a"b'), field("=1"), field("-5.5"), field("x,y")]).toEqual(["a", '"a""b"', '"\'=1"', "-5.5", '"x,y"']);
    const lines = csv(shown).split("\n");
    expect(lines).toHaveLength(6);
    expect(lines[3]).toBe("a_b & {c}\\,DAL,1234.5678,1000,1500,ms,2,0,a,DAL|n:2");
    expect(lines[2]).toBe('"\'=1+1",BLEU,,,,points,2,0,,BLEU|n:2');
  });

  test("the best is the best as it is shown, and none where there is no direction", () => {
    expect(best(compared.scores, metrics[0] as Metric, 0)).toEqual(new Set([0]));
    expect(best(compared.scores, { ...(metrics[0] as Metric), higher: null }, 0)).toEqual(new Set());
  });
});

test("checks of all systems stand side by side", () => {
  const check = (key: string, more: Partial<Check> = {}): Check => ({ key, title: key, help: "", count: 0, noun: "segment", value: null, unit: "", bad: false, rows: [], ids: [], ...more });
  const found = joined([[check("p")], [check("q", { count: 2, bad: true }), check("p")]]);
  expect(found.map(({ first, of }) => [first.key, of.map((one) => one?.count)])).toEqual([
    ["p", [0, 0]],
    ["q", [undefined, 2]],
  ]);
  expect(found.map(({ of }) => of.every(clean))).toEqual([true, false]);
});

test("of many segments the largest gaps are drawn, and an even sample", () => {
  const dal = Array.from({ length: 100 }, (_, row) => (row === 77 ? 50 : 1));
  const drawn = spots(dal.map(() => 0), dal, 10);
  expect(drawn).toHaveLength(10);
  expect(drawn).toContain(77);
  expect(Math.max(...drawn)).toBeGreaterThan(80);
  expect(spots([NaN, 1], [1, 2])).toEqual([1]);
});

test("the source streams in: words where they are known, else what was read", () => {
  expect(spoken("das ist gut", 3)?.map((piece) => [piece.text, piece.start, piece.end])).toEqual([["das", 0, 1], ["ist", 1, 2], ["gut", 2, 3]]);
  expect(spoken("das ist", 3)).toBeUndefined();
  expect(reads([1000, 1000, 1010, 2500], 2400).map((piece) => [piece.text, piece.end])).toEqual([["1.00 s", 1000], ["", 1010], ["1.39 s", 2400]]);
  expect(reads([], 500).map((piece) => piece.end)).toEqual([500]);
  expect(reads([-200, 300], 500).map((piece) => piece.end)).toEqual([300, 500]);
});

test("systems that differ in a number, or below a folder, are a family", () => {
  const names = ["wait-3", "wait-5", "base", "la2", "la 4", "2", "mma/λ=0.1", "mma/λ=0.3"];
  expect(families(names)).toEqual([
    { name: "wait", members: [0, 1] },
    { name: "la", members: [3, 4] },
    { name: "mma", members: [6, 7] },
  ]);
  expect(settings(names)).toEqual(["3", "5", "base", "2", "4", "2", "λ=0.1", "λ=0.3"]);
  expect(looks(names)).toEqual([0, 0, 3, 1, 1, 4, 2, 2]);
  expect(looks(names.slice(0, 3))).toEqual([0, 1, 2]);
});

test("names stand where they cover no other name", () => {
  const at = (x: number, y: number) => ({ x, y, letters: 10 });
  const all = sides([at(100, 100), at(102, 101), at(104, 99), at(480, 50)], 500).map((side) => side && [side.right, side.above]);
  expect(all).toEqual([[true, true], [false, true], [true, false], [false, true]]);
  expect(sides(Array.from({ length: 5 }, () => at(100, 100)), 500)[4]).toBeUndefined();
});

test("names cover no point", () => {
  const at = (x: number, y: number, letters: number) => ({ x, y, letters });
  const all = sides([at(200, 100, 13), at(230, 100, 3), at(228, 70, 3)], 500).map((side) => side && [side.right, side.above]);
  expect(all).toEqual([[false, true], [true, true], [true, true]]);
  expect(sides([at(20, 100, 13), at(50, 98, 3)], 500)[0]).toEqual({ right: true, above: false });
  expect(sides([at(20, 100, 13), at(50, 91, 3), at(50, 109, 3)], 500)[0]).toBeUndefined();
});

test("an axis has room beyond its points, even of one", () => {
  expect(spread(0, 100)).toEqual([-6, 106]);
  expect(spread(5, 5)).toEqual([4.5, 5.5]);
  expect(spread(0, 0)).toEqual([-1, 1]);
});
