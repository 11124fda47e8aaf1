// SPDX-License-Identifier: Apache-2.0
/** Reports as `lagging report` writes them, in a real browser. LAGGING_PYTHON says which Python has lagging. */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, before, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { fits, launch, open } from "./browser.mjs";

const DATA = fileURLToPath(new URL("../../docs/data/", import.meta.url));
const PYTHON = process.env.LAGGING_PYTHON ?? "python3";
const LOGS = [`a=${join(DATA, "system-a")}`, `b=${join(DATA, "system-b")}`];
const FOLDER = mkdtempSync(join(tmpdir(), "lagging-report-"));
const HOSTILE = [
  "<script>alert(1)</script>",
  "</script><img src=x onerror=alert(2)>",
  "\"'`&<>\u2028\u2029 ${alert(3)} javascript:alert(4)",
  "w".repeat(10_000),
  "\u202eright to left\u202c \u2067שלום עולם\u2069 مرحبا",
  "😀👩‍👩‍👧 我看见一只黑猫",
  "nul\u0000 inside",
];

const lagging = (...args) => execFileSync(PYTHON, ["-m", "lagging", ...args, "-q"], { cwd: FOLDER, encoding: "utf8", maxBuffer: 1 << 28 });
const report = (name, ...args) => {
  lagging("report", ...args, "-o", name);
  return pathToFileURL(join(FOLDER, name)).href;
};
/** Scores by system and metric, as `lagging score -f json` or `lagging compare -f json` prints them. */
const printed = (command, ...args) => {
  const found = {};
  for (const one of JSON.parse(lagging(command, ...args, "-f", "json")).scores) (found[one.system] ??= {})[one.metric] = one.score;
  return found;
};

const scores = (...args) => printed("score", ...args);

let browser;
let page;
let plain;
before(async () => {
  plain = report("plain.html", ...LOGS, "--resamples", "1000");
  browser = await launch();
});
after(async () => {
  await browser?.close();
  rmSync(FOLDER, { recursive: true });
});
afterEach(async () => {
  page?.quiet();
  await page?.context().close();
  page = undefined;
});

async function show(address, options = {}) {
  page = await open(browser, address, options);
  await page.waitForSelector("html[data-ready]");
}

/** The numbers in elements, with all their digits; NaN where there is none. */
const numbers = (selector) => page.$$eval(selector, (found) => found.map(({ value }) => (value === "" ? NaN : Number(value))));
const text = (selector) => page.$eval(selector, (found) => found.textContent);
const close = (shown, wanted) => {
  assert.equal(shown.length, wanted.length);
  shown.forEach((value, i) => assert.ok(Math.abs(value - wanted[i]) <= 1e-9 * Math.max(1, Math.abs(wanted[i])), `${value}, not ${wanted[i]}`));
};

test("every section shows the numbers of lagging score and lagging compare", async () => {
  await show(plain);
  const names = ["AP", "AL", "LAAL", "DAL", "BLEU"];
  const wanted = scores(...LOGS, "-m", "HiddenShare,Offline,SWF,LagPercentile(p=50),LagPercentile(p=90),LagPercentile(p=99)");
  // b is silent in one segment, which counts for neither where they are compared
  const compared = printed("compare", ...LOGS, "-m", `${names},HiddenShare,DAL(clock=elapsed),DAL(clock=queue)`, "--resamples", "100");
  for (const name of names) close(await numbers(`#comparison td[data-metric="${name}"] data`), ["a", "b"].map((s) => compared[s][name]));
  close(await numbers('#health [data-check="hidden"] data'), ["a", "b"].map((s) => wanted[s].HiddenShare));
  close(await numbers('#health [data-check="offline"] data'), ["a", "b"].map((s) => wanted[s].Offline));
  close(await numbers('#health [data-check="swf"] data'), ["a", "b"].map((s) => wanted[s].SWF));
  close(await numbers("#hidden [data-share]"), ["a", "b"].map((s) => compared[s].HiddenShare));
  const percentiles = async () => numbers("#distribution [data-percentile]");
  close(await percentiles(), ["a", "b"].flatMap((s) => [50, 90, 99].map((p) => wanted[s][`LagPercentile(p=${p})`])));
  const points = async () => numbers("#tradeoff [data-point]");
  close(await points(), ["a", "b"].map((s) => compared[s].DAL));
  for (const clock of ["elapsed", "queue"]) {
    await page.click(`#tradeoff [data-clock=${clock}]`);
    close(await points(), ["a", "b"].map((s) => compared[s][`DAL(clock=${clock})`]));
    assert.equal(await page.getAttribute(`#distribution [data-clock=${clock}]`, "aria-pressed"), "true");
    assert.match(await text("#tradeoff code"), new RegExp(`clock:${clock}.*bs:1000`));
  }
  assert.notDeepEqual(await percentiles(), ["a", "b"].flatMap((s) => [50, 90, 99].map((p) => wanted[s][`LagPercentile(p=${p})`])));
  for (const id of ["health", "comparison", "tradeoff", "hidden", "distribution", "segments", "timeline"])
    assert.ok((await text(`#${id} .body`)).length > 50, id);
});

test("where every segment has a value, the scores are those of lagging score", async () => {
  const logs = ["wait-3", "adaptive"].map((name) => join(DATA, "..", "..", "examples", "data", name));
  await show(report("whole.html", ...logs, "--resamples", "100"));
  const wanted = scores(...logs);
  for (const name of ["AP", "AL", "LAAL", "DAL", "BLEU"])
    close(await numbers(`#comparison td[data-metric="${name}"] data`), ["wait-3", "adaptive"].map((s) => wanted[s][name]));
  close(await numbers("#tradeoff [data-point]"), ["wait-3", "adaptive"].map((s) => wanted[s].DAL));
});

test("scores are sorted, hidden and copied", async () => {
  await show(plain, { permissions: ["clipboard-read", "clipboard-write"] });
  const order = () => page.$$eval("#comparison .scores tbody tr th bdi", (found) => found.map((one) => one.textContent));
  const head = page.locator('#comparison th:has(button[data-column="3"])');
  const button = head.locator("button");
  await button.click();
  assert.deepEqual([await order(), await head.getAttribute("aria-sort")], [["a", "b"], "ascending"]);
  await button.press("Enter");
  assert.deepEqual([await order(), await head.getAttribute("aria-sort")], [["b", "a"], "descending"]);
  await page.click("#comparison .hide summary");
  await page.uncheck("#comparison .box:nth-of-type(1) input");
  assert.deepEqual(await page.$$eval("#comparison .scores th button", (found) => found.map((one) => one.dataset.column)), ["1", "2", "3", "4"]);
  const copied = async (name) => {
    await page.getByRole("button", { name }).click();
    await page.waitForFunction(() => document.querySelector("#comparison [role=status]").textContent === "Copied.");
    return page.evaluate(() => navigator.clipboard.readText());
  };
  const latex = await copied("Copy LaTeX");
  assert.match(latex, /\\toprule[^]*b & [^]*a & [^]*\\bottomrule/);
  assert.ok(!latex.includes("AP $"));
  const wanted = printed("compare", ...LOGS, "-m", "DAL", "--resamples", "100");
  const rows = (await copied("Copy CSV")).split("\n").map((line) => line.split(","));
  const dal = rows.filter((row) => row[1] === "DAL").map((row) => [row[0], Number(row[2])]);
  assert.deepEqual(dal, [["b", wanted.b.DAL], ["a", wanted.a.DAL]]);
  await page.click("#comparison .signatures summary");
  assert.match(await text("#comparison .signatures"), /DAL\|unit:ms\|length:hypothesis\|clock:ideal/);
});

test("a figure says what is under the pointer", async () => {
  await show(plain);
  const drawn = page.locator("#tradeoff svg.plot-drawn");
  await drawn.scrollIntoViewIfNeeded();
  const point = await page.locator('#tradeoff svg [aria-label="dot"] path, #tradeoff svg [aria-label="dot"] circle').last().boundingBox();
  await page.mouse.move(point.x + point.width / 2, point.y + point.height / 2);
  await page.waitForFunction(() => /DAL 1\.722/.test(document.querySelector('#tradeoff [aria-label="tip"]')?.textContent ?? ""));
});

test("segments are filtered, ordered, searched, and chosen by keys", async () => {
  await show(plain);
  const ids = () => page.$$eval("#list .row .id bdi", (found) => found.map((one) => one.textContent));
  const values = (system) => page.$$eval("#list .row", (rows, s) => rows.map((row) => Number(row.querySelectorAll("data")[s].value || NaN)), system);
  const field = (name) => page.locator(`#segments label:has(span:text-is("${name}")) select`);
  const lags = await values(0);
  assert.deepEqual(lags, [...lags].sort((p, q) => q - p));
  assert.equal((await ids()).length, 6);
  await page.click("#turn");
  assert.deepEqual(await values(0), [...lags].reverse());
  await page.click("#turn");
  await field("order").selectOption({ label: "difference of A and B" });
  const [one, other] = [await values(0), await values(1)];
  const gaps = one.map((value, i) => Math.abs(value - other[i])).filter((gap) => !Number.isNaN(gap));
  assert.deepEqual(gaps, [...gaps].sort((p, q) => q - p));
  assert.equal((await ids()).at(-1), "3");
  await field("order").selectOption({ label: "AL–DAL gap of A" });
  assert.equal((await ids())[0], "1");
  await page.fill("#search", "black CAT");
  assert.deepEqual(await ids(), ["0"]);
  assert.equal(await text("#count"), "1 of 6 segments");
  await page.fill("#search", "");
  assert.ok(!(await page.isVisible("#health table")));
  await page.click("#health-1 summary");
  await page.click('#health-1 [data-check="empty"] button');
  assert.deepEqual(await ids(), ["3"]);
  await page.click("#segments .chip");
  assert.equal((await ids()).length, 6);
  await page.focus("#list");
  await page.keyboard.press("End");
  const last = (await ids()).at(-1);
  assert.equal(await text("#timeline .about strong"), last);
  assert.equal(await page.$eval("#list [aria-selected=true] bdi", (found) => found.textContent), last);
  await page.keyboard.press("Home");
  assert.equal(await text("#timeline .about strong"), (await ids())[0]);
});

test("the timeline of a segment is that of the log, and plays", async () => {
  await show(plain);
  await page.click("#list .row >> nth=0");
  const log = readFileSync(join(DATA, "system-a", "instances.log"), "utf8").trim().split("\n").map((line) => JSON.parse(line));
  const segment = log[Number(await text("#timeline .about strong"))];
  const first = page.locator("#timeline .picture").first();
  assert.deepEqual(await first.locator(".tl-row.tl-label").allTextContents(), segment.prediction.split(" "));
  const share = (found) => found.map((one) => parseFloat(one.style.left) / 100);
  const last = await first.locator(".tl-end").evaluateAll(share);
  const at = (await first.locator(".tl-row .tl-written").evaluateAll(share)).map((left) => (left / last[0]) * segment.source_length);
  segment.delays.forEach((g, t) => assert.ok(Math.abs(g - at[t]) < 1, `token ${t}: ${at[t]}, not ${g}`));
  await page.locator('#timeline label:has(span:text-is("computing")) select').selectOption({ label: "elapsed" });
  const late = (await first.locator(".tl-row .tl-elapsed").evaluateAll(share)).map((left) => (left / last[0]) * segment.source_length);
  segment.elapsed.forEach((e, t) => assert.ok(Math.abs(e - late[t]) < 2, `token ${t}: ${late[t]}, not ${e}`));
  assert.ok((await first.locator(".tl-broke:not([hidden])").count()) >= 1);
  assert.equal(await page.locator("#timeline .picture .timeline").count(), 2);
  const before = await text("#timeline .about strong");
  await page.click("#next");
  assert.notEqual(await text("#timeline .about strong"), before);
  await page.click("#previous");
  assert.equal(await text("#timeline .about strong"), before);
  const cursor = () => first.locator(".tl-cursor").evaluate((found) => (found.hidden ? -1 : parseFloat(found.style.left)));
  assert.equal(await cursor(), -1);
  await page.click("#play");
  await page.waitForTimeout(300);
  const early = await cursor();
  await page.waitForTimeout(500);
  // half a second later it is half a second further, however slow the browser
  const moved = (((await cursor()) - early) / (100 * last[0])) * segment.source_length;
  assert.ok(early > 0 && moved > 300 && moved < 2000, `${early} %, then ${moved} ms`);
  await page.click("#play");
  assert.equal(await cursor(), -1);
});

test("hostile text is text", async () => {
  const lines = HOSTILE.map((bad, i) => {
    const n = bad.split(/\s+/).filter((word) => word).length;
    return JSON.stringify({ id: `${bad.slice(0, 60)}${i}`, prediction: bad, reference: bad, source: bad, document: bad, delays: Array(n).fill(1), source_length: 2, unit: "token", level: "token" });
  });
  writeFileSync(join(FOLDER, "hostile.jsonl"), `${lines.join("\n")}\n`);
  const names = ["<img src=x onerror=alert(5)>", "</title><script>alert(6)</script>\u2028"];
  const address = report("hostile.html", ...names.map((name) => `${name}=hostile.jsonl`), "--title", "</title><script>alert(7)</script>", "--resamples", "100");
  for (const width of [1280, 400]) {
    await show(address, { viewport: { width, height: 800 } });
    await fits(page);
    assert.equal(await text("#title"), "</title><script>alert(7)</script>");
    assert.deepEqual(await page.$$eval("#comparison .scores tbody th bdi", (found) => found.map((one) => one.textContent)), names);
    await page.locator('#segments label:has(span:text-is("order")) select').selectOption({ label: "order of the log" });
    await page.click("#turn");
    for (let i = 0; i < HOSTILE.length; i++) {
      const shown = await page.$$eval("#timeline .picture .text .foreign", (found) => found.map((one) => one.textContent));
      const id = await text("#timeline .about strong");
      assert.deepEqual(shown, Array(2).fill(HOSTILE[Number(id.at(-1))]));
      await fits(page);
      await page.focus("#list");
      await page.keyboard.press("ArrowDown");
    }
    assert.deepEqual(await page.$$eval("main img, main script, main iframe, main a:not([href^=\"#\"]), main audio", (found) => found.length), 0);
    page.quiet();
    if (width > 400) await page.context().close();
  }
});

test("a page is one file that names no other, and the same each time", () => {
  const made = readFileSync(join(FOLDER, "plain.html"), "utf8");
  report("again.html", ...LOGS, "--resamples", "1000");
  assert.equal(readFileSync(join(FOLDER, "again.html"), "utf8"), made);
  assert.ok(!/\b(src|href)\s*=\s*["']?\s*(https?:)?\/\//i.test(made));
  assert.match(made, /Content-Security-Policy" content="default-src 'none'; script-src 'sha256-/);
});

test("talks have their lag over time, their drift and their regimes", async () => {
  const cut = ["--segmentation", "talks.yaml", "--reference", "talks.de"].map((part) => (part.startsWith("--") ? part : join(DATA, part)));
  const log = `talks=${join(DATA, "talks.log")}`;
  await show(report("talks.html", log, ...cut));
  const wanted = scores(log, ...cut, "-m", "LagDrift,LongYAAL").talks;
  close(await numbers("#over-time [data-drift]"), [wanted.LagDrift]);
  close(await numbers("#tradeoff [data-point]"), [wanted.LongYAAL]);
  assert.equal(await page.locator("#tradeoff [aria-label=rect] rect").count(), 0);
  await page.locator('#tradeoff label:has(span:text-is("regime")) select').selectOption({ label: "iwslt26" });
  assert.equal(await page.locator("#tradeoff [aria-label=rect] rect").count(), 2);
});

test("a phone, the dark, print, and thousands of segments", async () => {
  const n = 12_000;
  const lines = Array.from({ length: n }, (_, i) => {
    const y = 3 + (i % 17);
    const delays = Array.from({ length: y }, (_, t) => Math.min(y, t + 1 + (i % 5)));
    return JSON.stringify({ id: i, delays, source_length: y, prediction: Array(y).fill(`w${i % 97}`).join(" ") });
  });
  writeFileSync(join(FOLDER, "many.jsonl"), `${lines.join("\n")}\n`);
  await show(report("many.html", "many=many.jsonl", "-m", "AL,DAL", "--resamples", "100"), { viewport: { width: 400, height: 800 }, colorScheme: "dark" });
  await fits(page);
  const [paint] = await page.evaluate(() => performance.getEntriesByName("first-contentful-paint").map((entry) => entry.startTime));
  assert.ok(paint < 1000, `first paint after ${paint} ms`);
  assert.ok((await page.locator("#list .row").count()) < 40);
  await page.$eval("#list", (list) => (list.scrollTop = list.scrollHeight));
  await page.waitForFunction((last) => [...document.querySelectorAll("#list .row")].some((row) => row.ariaPosInSet === String(last)), n);
  await page.fill("#search", "w96");
  assert.match(await text("#count"), /^123 of 12,000 segments$/);
  await page.emulateMedia({ media: "print", colorScheme: "light" });
  assert.ok(!(await page.isVisible("#contents")));
  assert.equal(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), "rgb(255, 255, 255)");
});

test("the first screen has the verdicts, the scores and the curve", async () => {
  const logs = ["wait-5", "antagonist-5", "offline"].map((name) => join(DATA, "..", "..", "examples", "data", name));
  const address = report("verdicts.html", ...logs, "--resamples", "100");
  for (const [width, height] of [[1400, 900], [400, 1500]]) {
    await show(address, { viewport: { width, height } });
    await fits(page);
    assert.deepEqual(await page.$$eval("#comparison .verdict", (found) => found.map((one) => one.textContent)), ["sound", "▲ suspicious", "▲ degenerate"]);
    const [box] = await page.$$eval("#tradeoff svg.plot-drawn", (found) => found.map((one) => one.getBoundingClientRect().bottom));
    assert.ok(box < height, `the curve ends at ${box}`);
    const last = await page.$eval('#comparison td[data-metric="BLEU"]', (found) => found.getBoundingClientRect().right);
    assert.ok(last <= width, `the last score ends at ${last}`);
    assert.match(await text("#health-1 summary"), /antagonist-5.*AL hides 30 % of the lag/);
    page.quiet();
    if (width > 400) await page.context().close();
  }
});

test("a sweep has its settings as curves, and is filtered", async () => {
  const data = join(DATA, "..", "..", "examples", "data");
  for (const [family, names] of Object.entries({ wait: ["wait-1", "wait-3", "wait-5"], other: ["adaptive", "offline", "antagonist-5", "wait-3"] }))
    for (const [k, name] of names.entries()) {
      mkdirSync(join(FOLDER, "sweep", family, `k=${9 + k}`), { recursive: true });
      for (const file of ["instances.log", "config.yaml"]) copyFileSync(join(data, name, file), join(FOLDER, "sweep", family, `k=${9 + k}`, file));
    }
  await show(report("sweep.html", "sweep", "-m", "AL,DAL,BLEU", "--resamples", "100"));
  const names = () => page.$$eval("#comparison .scores tbody th bdi", (found) => found.map((one) => one.textContent));
  assert.deepEqual(await names(), ["other/9", "other/10", "other/11", "other/12", "wait/9", "wait/10", "wait/11"]);
  assert.equal(await page.locator('#tradeoff svg [aria-label="line"] path').count(), 2);
  await page.locator('#filters label:has(bdi:text-is("other")) input').uncheck();
  assert.deepEqual(await names(), ["wait/9", "wait/10", "wait/11"]);
  assert.equal(await text("#shown"), "3 of 7 systems shown");
  assert.equal((await numbers("#tradeoff [data-point]")).length, 3);
  assert.equal(await page.locator("#health details:visible").count(), 3);
  await page.fill("#filter", "10");
  assert.deepEqual(await names(), ["wait/10"]);
});

test("every figure is saved as a drawing that stands alone, and has its numbers", async () => {
  const shown = () => show(plain, { acceptDownloads: true, colorScheme: "dark" });
  const buttons = () => page.getByRole("button", { name: /^Save .* as (SVG|PNG)$/ });
  await shown();
  const figures = await page.locator("figure.plot, .picture .timeline").count();
  assert.equal(await buttons().count(), 2 * figures);
  for (let i = 0; i < 2 * figures; i++) {
    if (i && i % 6 === 0) await shown(); // Chromium asks before a page saves its eleventh file
    const [download] = await Promise.all([page.waitForEvent("download"), buttons().nth(i).click()]);
    const bytes = readFileSync(await download.path());
    if (i % 2) assert.deepEqual([...bytes.subarray(1, 4)], [..."PNG"].map((letter) => letter.charCodeAt(0)));
    else {
      const drawn = bytes.toString("utf8");
      assert.match(drawn, /^<svg[^]*<\/svg>$/);
      assert.ok(!/var\(|light-dark|currentColor/.test(drawn));
      assert.match(drawn, /fill="rgb\(20, 23, 28\)"/); // the paper of the dark page
    }
  }
  assert.ok((await page.locator("details.numbers table").count()) >= 3);
});

test("a segment is linked to its recording, and plays its sound", async () => {
  mkdirSync(join(FOLDER, "wavs"));
  const rate = 8000;
  const sound = Buffer.alloc(44 + 2 * rate * 6);
  sound.write("RIFF", 0);
  sound.writeUInt32LE(36 + 2 * rate * 6, 4);
  sound.write("WAVEfmt ", 8);
  for (const [value, at, size] of [[16, 16, 4], [1, 20, 2], [1, 22, 2], [rate, 24, 4], [2 * rate, 28, 4], [2, 32, 2], [16, 34, 2]]) sound.writeUIntLE(value, at, size);
  sound.write("data", 36);
  sound.writeUInt32LE(2 * rate * 6, 40);
  for (let i = 0; i < 6; i++) writeFileSync(join(FOLDER, "wavs", `talk_${i}.wav`), sound);
  await show(report("sound.html", ...LOGS, "--sounds", "wavs", "--resamples", "100"));
  const id = await text("#timeline .about strong");
  assert.equal(await page.getAttribute("#timeline .about a", "href"), `wavs/talk_${id}.wav`);
  const length = await page.$eval("#timeline audio", (audio) => new Promise((done, fail) => {
    audio.addEventListener("loadedmetadata", () => done(audio.duration));
    audio.addEventListener("error", () => fail(new Error("not played")));
    audio.load();
  }));
  assert.equal(length, 6);
  const asked = page;
  page = undefined; // the sound is the one thing that the page asks for
  await asked.context().close();
});
