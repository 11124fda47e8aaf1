// SPDX-License-Identifier: Apache-2.0
/** Chromium, and pages in it that may neither complain nor ask for anything. */

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const HERE = dirname(fileURLToPath(import.meta.url));
const FLAGS = "no-sandbox disable-gpu disable-quic no-first-run disable-background-networking disable-component-update disable-sync";

/** Where a page that is shipped lies. */
export const asset = (name) => pathToFileURL(join(HERE, "..", "..", "src", "lagging", "render", "web", name)).href;

/** Starts the browser: LAGGING_CHROMIUM, or Debian's. */
export async function launch() {
  const executablePath = process.env.LAGGING_CHROMIUM ?? "/usr/bin/chromium";
  assert.ok(existsSync(executablePath), `there is no ${executablePath}: set LAGGING_CHROMIUM`);
  return chromium.launch({ executablePath, args: FLAGS.split(" ").map((flag) => `--${flag}`) });
}

/**
 * A page at an address. `page.quiet()` fails if there was a message on the console, an error, or any request but for
 * the page itself.
 */
export async function open(browser, address, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const page = await context.newPage();
  const noise = [];
  page.on("console", (message) => noise.push(`${message.type()}: ${message.text()}`));
  page.on("pageerror", (error) => noise.push(`error: ${error.message}`));
  page.on("dialog", (dialog) => noise.push(`dialog: ${dialog.message()}`));
  page.on("request", (request) => {
    const url = request.url();
    if (url.split("#")[0] !== address.split("#")[0] && !url.startsWith("data:")) noise.push(`request: ${url}`);
  });
  await page.goto(address);
  page.quiet = () => assert.deepEqual(noise, []);
  return page;
}

/** Whether something sticks out to the right, so that the whole page would scroll. */
export async function fits(page) {
  const [wide, room] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  assert.ok(wide <= room, `${wide} pixels wide, on a screen of ${room}`);
}
