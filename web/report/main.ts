// SPDX-License-Identifier: Apache-2.0
/** The report: unpacks its data, and fills its sections. */

import "../src/theme.css";
import "./report.css";
import { comparison } from "../src/report/comparison";
import { distribution } from "../src/report/distribution";
import { looks } from "../src/report/families";
import { filter } from "../src/report/filter";
import { counted, setLooks } from "../src/report/format";
import { health } from "../src/report/health";
import { hidden } from "../src/report/hidden";
import { list } from "../src/report/list";
import { sentence } from "../src/report/sentence";
import { State } from "../src/report/state";
import { tradeoff } from "../src/report/tradeoff";
import type { Data } from "../src/report/types";
import { unpack } from "../src/report/unpack";
import { byId, h } from "../src/ui";

const SCHEMA = 1;

/** The place of a section's content. */
function body(id: string): HTMLElement {
  const found = byId(id).querySelector<HTMLElement>(".body");
  if (!found) throw new Error(`#${id} has no body`);
  return found;
}

/** Lets the browser paint what is there so far. */
const breathe = (): Promise<void> => new Promise((done) => setTimeout(done, 0));

/** How much was scored, and of what: what all systems have in common. */
function about(data: Data): HTMLElement {
  const origins = [...new Set(data.systems.map((one) => one.origin))];
  const segments = [...new Set(data.systems.map((one) => one.segments))];
  const parts = [counted(data.systems.length, "system"), ...(segments.length === 1 ? [counted(segments[0] ?? 0, "segment")] : []), origins.length === 1 ? (origins[0] ?? "") : `${origins.length} kinds of logs`];
  return h("p", { class: "quiet small" }, parts.join(" · "));
}

async function main(): Promise<void> {
  const text = byId("data").textContent ?? "";
  if (!text.trim()) {
    byId("faults").textContent = "This is the page of `lagging report` without data: run lagging report base=… new=… -o report.html";
    return;
  }
  const data = await unpack(text);
  if (data.schema !== SCHEMA) throw new Error(`its data has the format ${data.schema}, and this page reads ${SCHEMA}`);
  const state = new State(data);
  if (data.title) {
    byId("title").textContent = data.title.slice(0, 300);
    document.title = data.title.slice(0, 300);
  }
  byId("version").textContent = data.version;
  setLooks(looks(data.systems.map((one) => one.name)));
  byId("about").append(about(data));
  filter(byId("filters"), state);
  comparison(body("comparison"), state);
  tradeoff(body("tradeoff"), state);
  await breathe();
  health(body("health"), state);
  hidden(body("hidden"), state);
  distribution(body("distribution"), state);
  await breathe();
  const rows = list(body("segments"), state);
  sentence(body("timeline"), state, rows);
  document.documentElement.dataset["ready"] = "true";
  // the sections were empty when the browser looked for the one in the address
  if (location.hash) document.getElementById(location.hash.slice(1))?.scrollIntoView();
}

main().catch((error: unknown) => {
  byId("faults").textContent = `This report cannot be shown: ${error instanceof Error ? error.message : String(error)}`;
});
