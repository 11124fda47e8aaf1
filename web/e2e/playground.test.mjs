// SPDX-License-Identifier: Apache-2.0
/** The playground as it is shipped, in a real browser. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, afterEach, before, test } from "node:test";
import { asset, fits, launch, open } from "./browser.mjs";

const VECTORS = JSON.parse(readFileSync(new URL("../tests/vectors.json", import.meta.url), "utf8"));
const PAGE = asset("playground.html");

let browser;
let page;
before(async () => (browser = await launch()));
after(() => browser.close());
afterEach(async () => {
  page?.quiet();
  await page?.context().close();
});

async function show(hash = "", options = {}) {
  page = await open(browser, PAGE + (hash && `#${hash}`), options);
}

/** The numbers on the page: { a: { AL: 4, … }, b: … }; NaN where there is none. */
const numbers = () =>
  page.$$eval("[data-metric]", (cells) => {
    const found = {};
    for (const cell of cells) {
      const { value } = cell.querySelector("data");
      (found[cell.dataset.system] ??= {})[cell.dataset.metric] = value === "" ? NaN : Number(value);
    }
    return found;
  });
const text = (selector) => page.locator(selector).textContent();
const token = (system, t) => page.locator(`[data-system=${system}] [role=slider]`).nth(t - 1);
const actions = (system) => page.locator(`section[data-system=${system}] .actions`);
const hash = (expected) => page.waitForFunction((h) => location.hash === h, `#${expected}`, { timeout: 5000 });

function same(found, expected) {
  for (const [name, value] of Object.entries(expected))
    if (value === null) assert.ok(Number.isNaN(found[name]), name);
    else assert.ok(Math.abs(found[name] - value) <= 1e-9, `${name}: ${found[name]}, but Python says ${value}`);
}

test("every table of the paper has Python's numbers, and its own story", async () => {
  await show();
  const stories = new Set();
  for (const [table, systems] of Object.entries(VECTORS.tables)) {
    await page.getByRole("button", { name: `Table ${table}` }).click();
    const found = await numbers();
    assert.equal(Object.keys(found).length, systems.length);
    for (const [i, system] of systems.entries()) {
      const name = "ab"[i];
      same(found[name], system.scores);
      assert.match(await text(`section[data-system=${name}] h2`), new RegExp(`: ${system.policy}$`));
      const cells = await page.$$eval(`section[data-system=${name}] .tokens tr`, (rows) =>
        rows.map((row) => [...row.querySelectorAll("td data")].map((cell) => Number(cell.value))),
      );
      const [, , g, lags, effective, effectiveLags] = cells;
      assert.deepEqual(g, system.delays);
      lags.forEach((lag, t) => assert.ok(Math.abs(lag - system.lags[t]) < 1e-9));
      assert.deepEqual(effective, system.effective_delays);
      assert.deepEqual(effectiveLags, system.effective_lags);
    }
    assert.equal(await page.locator("#presets [aria-pressed=true]").count(), 1);
    stories.add(await text("#story"));
  }
  assert.equal(stories.size, 6);
});

test("a token is dragged, its neighbours come along, and the numbers follow", async () => {
  await show("a=wait-4:5:5");
  const box = await token("a", 2).boundingBox();
  const [left, width] = await page.$eval("[data-system=a] .tl-track.tl-row", (track) => {
    const { left, width } = track.getBoundingClientRect();
    return [left, width];
  });
  const end = 8; // the last token is there at g' = 8
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  await page.mouse.down();
  const seen = [];
  for (const g of [5, 4, 3, 2]) {
    await page.mouse.move(left + (width * g) / end, box.y + 3, { steps: 2 });
    seen.push((await numbers()).a.DAL);
  }
  await page.mouse.up();
  assert.equal(await actions("a").inputValue(), "RRWWRRRWWW");
  assert.deepEqual(seen.slice(0, 2), [4, 4]); // tokens 3 to 5 stay at 5: nothing is gained at 4
  assert.equal((await numbers()).a.DAL, (2 + 2 + 3 * 3) / 5);
  assert.match(await text("section[data-system=a] h2"), /by hand/);
  await hash("a=RRWWRRRWWW");
});

test("the antagonist, made by the keyboard alone", async () => {
  await show("a=wait-4:5:5");
  await token("a", 4).focus();
  await page.keyboard.press("ArrowLeft");
  assert.equal(await actions("a").inputValue(), "RRRRWWWWRW");
  const { a } = await numbers();
  assert.equal(a.DAL, 4);
  assert.ok(Math.abs(a.AL - 2.2) < 1e-9);
  assert.match(await text("section[data-system=a] .remarks"), /AL is 1.8 below DAL/);
  assert.match(await token("a", 4).getAttribute("aria-valuetext"), /^written after 4 of 5 source tokens; lag 1, 4 once/);
  await page.keyboard.press("ArrowUp");
  assert.equal(await page.evaluate(() => document.activeElement.dataset.token), "2");
  await page.keyboard.press("Home");
  assert.equal(await actions("a").inputValue(), "WWWRRRRWRW");
  await page.keyboard.press("End");
  assert.equal(await actions("a").inputValue(), "WWRRRRRWWW");
});

test("everything can be reached by Tab", async () => {
  await show("a=wait-2:3:3&b=offline:3:3");
  const reached = new Set();
  for (let i = 0; i < 60; i++) {
    await page.keyboard.press("Tab");
    reached.add(
      await page.evaluate(() => {
        const { tagName, role, type, className } = document.activeElement;
        return document.activeElement.getAttribute("role") ?? `${tagName} ${type ?? className}`;
      }),
    );
  }
  for (const kind of ["BUTTON button", "SELECT select-one", "INPUT number", "INPUT text", "slider", "INPUT range"])
    assert.ok(reached.has(kind), `${kind} not among ${[...reached]}`);
});

test("the write cost: DAL with the d of the slider", async () => {
  await show("a=wait-1:6:3");
  assert.equal((await numbers()).a.cost, undefined);
  const slider = page.getByRole("slider", { name: /What writing a token costs/ });
  await slider.fill("0.5");
  assert.equal((await numbers()).a.cost, 1.5); // tests/golden/test_cherry_foster_2019.py
  assert.equal((await numbers()).a.DAL, 1);
  await slider.fill("1");
  assert.equal((await numbers()).a.cost, 1);
  await hash("a=wait-1:6:3&d=1");
  await slider.focus();
  await page.keyboard.press("ArrowLeft");
  await hash("a=wait-1:6:3&d=0.95");
  await page.getByRole("button", { name: "|x|/|y|" }).click();
  await hash("a=wait-1:6:3");
});

test("policies and lengths", async () => {
  await show("a=wait-3:5:5");
  const policy = page.getByLabel("policy");
  for (const { policy: name, x, y, delays } of VECTORS.policies.filter((v) => v.x === 7)) {
    const [, kind, k, caught, c] = /^([a-z]+)(?:-(\d+))?(-catchup)?(?:=([\d.]+))?$/.exec(name);
    await policy.selectOption(c ? "rate" : caught ? "catchup" : kind);
    if (k) await page.getByLabel("k", { exact: true }).fill(k);
    if (c) await page.getByLabel("c", { exact: true }).fill(c);
    await page.getByLabel("source |x|").fill(String(x));
    await page.getByLabel("target |y|").fill(String(y));
    const found = await page.$$eval("[data-system=a] [role=slider]", (all) => all.map((one) => Number(one.ariaValueNow)));
    assert.deepEqual(found, delays, name);
    assert.match(await text("section[data-system=a] h2"), new RegExp(`: ${name}$`));
  }
});

test("a schedule is typed; what is no action is named and nothing breaks", async () => {
  await show();
  await actions("b").fill("r r w R W w");
  assert.deepEqual(await token("b", 3).getAttribute("aria-valuenow"), "3");
  await actions("b").fill("RRW<img src=x onerror=alert(1)>");
  assert.match(await text("section[data-system=b] .fault"), /"<" at place 4 is neither R \(read\) nor W/);
  assert.equal(await page.locator("section[data-system=b] [role=slider]").count(), 3);
  await actions("b").fill("RWW".repeat(40));
  assert.match(await text("section[data-system=b] .fault"), /room for 60/);
  await actions("b").fill("");
  assert.match(await text("section[data-system=b] .remarks"), /Nothing is written/);
  assert.ok(Object.values((await numbers()).b).every(Number.isNaN));
  await actions("b").fill("W");
  assert.match(await text("section[data-system=b] .remarks"), /Nothing is to be read/);
});

test("the address holds the state, and garbage in it harms nothing", async () => {
  await show("a=RRRRWWWWRW&b=segment-2:5:5&d=0.5&r=9");
  const found = await numbers();
  assert.deepEqual(Object.keys(found), ["a", "b"]);
  await page.getByRole("button", { name: "Only A" }).click();
  await hash("a=RRRRWWWWRW&d=0.5&r=9");
  same((await numbers()).a, found.a);
  await page.reload();
  same((await numbers()).a, found.a);
  await page.evaluate(() => (location.hash = "a=<img src=x onerror=alert(1)>&zzz&d=NaN&r=%%%"));
  await page.waitForFunction(() => document.querySelector("#faults").textContent !== "");
  assert.match(await text("#faults"), /cannot be read/);
  assert.equal(await page.locator("img").count(), 0);
  same((await numbers()).b, VECTORS.tables[2][1].scores); // what is shown instead
});

test("two schedules share one scale; a second comes and goes", async () => {
  await show("a=offline:4:4");
  await page.getByRole("button", { name: "Compare with another" }).click();
  await page.getByLabel("policy").nth(1).selectOption("prescient");
  assert.match(await text("[data-metric=CW][data-system=b] .why"), /nothing is read/);
  assert.match(await text("[data-metric=YAAL][data-system=a] .why"), /before the source ends/);
  const ends = await page.$$eval(".tl-end", (all) => all.map((one) => one.style.left));
  assert.equal(ends.length, 2);
  assert.equal(ends[0], ends[1]);
  await hash("a=offline:4:4&b=prescient:4:4");
});

test("it plays, and stops", async () => {
  for (const reducedMotion of ["no-preference", "reduce"]) {
    await show("a=wait-1:2:2", { reducedMotion });
    await page.getByRole("button", { name: "Play" }).click();
    await page.locator(".timeline.is-playing .is-heard").first().waitFor({ timeout: 5000 });
    await page.locator(".tl-track.is-said").nth(1).waitFor({ timeout: 5000 });
    await page.getByRole("button", { name: "Play" }).waitFor({ timeout: 5000 }); // by itself, at the end
    assert.equal(await page.locator(".is-playing").count(), 0);
    await page.getByRole("button", { name: "Play" }).click();
    await page.getByRole("button", { name: "■ Stop" }).click();
    assert.equal(await page.locator(".is-playing").count(), 0);
    page.quiet();
    if (reducedMotion === "no-preference") await page.context().close();
  }
});

for (const width of [400, 1280])
  for (const colorScheme of ["light", "dark"])
    test(`${width} pixels, ${colorScheme}: nothing sticks out, everything can be read`, async () => {
      await show("", { viewport: { width, height: 800 }, colorScheme, hasTouch: width === 400 });
      for (const address of ["a=wait-3:60:60&b=offline:60:60", "a=RW", "a=wait-1:6:3&d=20", "a="]) {
        await page.evaluate((to) => (location.hash = to), address);
        await page.waitForTimeout(50);
        for (const details of await page.locator("details").all()) await details.evaluate((one) => (one.open = true));
        await fits(page);
      }
      const weak = await page.evaluate(() => {
        const light = (colour) => {
          const [r, g, b] = colour.match(/[\d.]+/g).map((v) => (v / 255 <= 0.03928 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
          return 0.2126 * r + 0.7152 * g + 0.0722 * b;
        };
        const ground = (element) => {
          for (let e = element; e; e = e.parentElement) {
            const colour = getComputedStyle(e).backgroundColor;
            if (!/, 0\)$|transparent/.test(colour)) return colour;
          }
          return "rgb(255, 255, 255)";
        };
        return [...document.querySelectorAll("h1, h2, p, li, th, td, label span, button, .tl-lag, .tl-tick, data")]
          .filter((e) => e.textContent.trim() && e.offsetParent && !e.classList.contains("is-uncounted"))
          .map((e) => {
            const [a, b] = [light(getComputedStyle(e).color), light(ground(e))].sort((p, q) => q - p);
            return [e.className || e.tagName, (a + 0.05) / (b + 0.05)];
          })
          .filter(([, contrast]) => contrast < 4.5);
      });
      assert.deepEqual(weak, []);
    });

test("a finger drags a token on a phone", async () => {
  await show("a=wait-4:5:5", { viewport: { width: 400, height: 800 }, hasTouch: true, isMobile: true });
  await token("a", 4).scrollIntoViewIfNeeded();
  const { x, y, width, height } = await token("a", 4).boundingBox();
  const track = await page.locator("[data-system=a] .tl-track.tl-row").first().boundingBox();
  const touch = await page.context().newCDPSession(page);
  const point = (px) => ({ touchPoints: [{ x: px, y: y + height / 2 }] });
  await touch.send("Input.dispatchTouchEvent", { type: "touchStart", ...point(x + width / 2) });
  await touch.send("Input.dispatchTouchEvent", { type: "touchMove", ...point(track.x + (track.width * 4.5) / 8) });
  await touch.send("Input.dispatchTouchEvent", { type: "touchMove", ...point(track.x + (track.width * 4) / 8) });
  await touch.send("Input.dispatchTouchEvent", { type: "touchEnd", touchPoints: [] });
  assert.equal(await actions("a").inputValue(), "RRRRWWWWRW");
});

test("for those who listen to the page", async () => {
  await show();
  const unnamed = await page.$$eval("button, input, select, [role=slider], section, nav, table", (all) =>
    all
      .filter((e) => !(e.labels?.length || e.textContent.trim() || e.ariaLabel || e.getAttribute("aria-labelledby")))
      .map((e) => e.outerHTML),
  );
  assert.deepEqual(unnamed, []);
  const tree = await page.locator("main").ariaSnapshot();
  assert.match(tree, /slider "target token 1"/);
  assert.match(tree, /rowheader "AL_y"/);
});

test("on paper: pictures and numbers, without the knobs", async () => {
  await show();
  await page.emulateMedia({ media: "print", colorScheme: "dark" });
  assert.equal(await page.getByLabel("policy").first().isVisible(), false);
  assert.equal(await page.locator(".timeline").first().isVisible(), true);
  const dark = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  assert.equal(dark, "rgb(255, 255, 255)");
});
