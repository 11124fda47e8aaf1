// SPDX-License-Identifier: Apache-2.0
/**
 * Builds the pages, each into one file that needs nothing else: `node build.mjs [--check] [PAGE…]`.
 *
 * A page is a folder with an index.html. Script and style are put into it, and a content security policy allows these
 * alone, by their hashes: nothing is fetched, and no other script runs. The bytes depend on the sources and on
 * package-lock.json, on nothing else. With --check nothing is written; it fails if a committed file is another one.
 */

import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "vite";

const HERE = dirname(fileURLToPath(import.meta.url));
const OUT = join(HERE, "..", "src", "lagging", "render", "web");
const ALL = ["playground", "report"].filter((page) => existsSync(join(HERE, page, "index.html")));
const ASKED = process.argv.slice(2).filter((arg) => arg !== "--check");
const PAGES = ASKED.length ? ASKED : ALL;
const NOTICES = "THIRD_PARTY.txt";

/** How a content security policy names a script or a style. */
const hash = (text) => `'sha256-${createHash("sha256").update(text, "utf8").digest("base64")}'`;

/** The page as one file, and the modules that are in it. */
async function made(page) {
  const { output } = await build({
    root: join(HERE, page),
    base: "./",
    configFile: false,
    logLevel: "warn",
    build: {
      write: false,
      target: "es2022",
      cssCodeSplit: false,
      modulePreload: false,
      assetsInlineLimit: 0,
      rollupOptions: { output: { codeSplitting: false } },
    },
  });
  const [script, ...more] = output.filter((file) => file.type === "chunk");
  const style = output.find((file) => file.fileName.endsWith(".css"));
  const html = output.find((file) => file.fileName === "index.html");
  const others = output.filter((file) => ![script, style, html].includes(file));
  if (more.length || others.length) throw new Error(`${page} is more than one file: ${[...more, ...others].map((f) => f.fileName)}`);
  const js = script.code.trim().replaceAll(/<(?=\/script|!--)/gi, "\\x3c");
  const css = String(style.source).trim();
  const policy = [
    "default-src 'none'",
    `script-src ${hash(js)}`,
    `style-src ${hash(css)}`,
    "img-src data:",
    "base-uri 'none'",
    "form-action 'none'",
  ].join("; ");
  const text = String(html.source)
    .replace(/\s*<script\b[^>]*\bsrc=[^>]*><\/script>/, "")
    .replace(/\s*<link\b[^>]*rel="stylesheet"[^>]*>/, "")
    .replace(/<meta charset="utf-8"\s*\/?>/, (meta) => `${meta}\n<meta http-equiv="Content-Security-Policy" content="${policy}">`)
    .replace("</head>", () => `<style>${css}</style>\n</head>`)
    .replace("</body>", () => `<script type="module">${js}</script>\n</body>`);
  for (const part of [policy, css, js]) if (!text.includes(part)) throw new Error(`${page}: something was not put in`);
  return { text, modules: script.moduleIds };
}

/** Name, version, licence and notice of the package that a module belongs to; undefined if it is ours. */
function packageOf(module) {
  const parts = module.split("/");
  const at = parts.lastIndexOf("node_modules");
  if (at < 0) return undefined;
  const folder = parts.slice(0, at + (parts[at + 1].startsWith("@") ? 3 : 2)).join("/");
  const { name, version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const notice = readdirSync(folder).filter((file) => /^(licen[cs]e|notice|copying)/i.test(file)).sort();
  if (!notice.length) throw new Error(`${relative(HERE, folder)} has no licence file`);
  const text = notice.map((file) => readFileSync(join(folder, file), "utf8").replaceAll("\r", "").trim()).join("\n\n");
  return { title: `${name} ${version} (${license})`, text };
}

/** What the pages hold of others, with the notices that go with it. */
function notices(found) {
  const lines = ["What the pages in this folder hold beside the code of lagging itself.", ""];
  const texts = new Map();
  for (const [page, modules] of found) {
    const packages = modules.map(packageOf).filter((found) => found !== undefined);
    for (const { title, text } of packages) texts.set(title, text);
    const titles = [...new Set(packages.map((found) => found.title))].sort();
    lines.push(`${page}.html: ${titles.join(", ") || "nothing"}`);
  }
  for (const title of [...texts.keys()].sort()) lines.push("", "-".repeat(100), title, "", texts.get(title));
  return `${lines.join("\n")}\n`;
}

const files = new Map();
const found = new Map();
for (const page of PAGES) {
  const { text, modules } = await made(page);
  files.set(`${page}.html`, text);
  found.set(page, modules);
}
if (!ASKED.length) files.set(NOTICES, notices(found)); // they are about all pages

if (process.argv.includes("--check")) {
  const stale = [...files].filter(([name, text]) => !existsSync(join(OUT, name)) || readFileSync(join(OUT, name), "utf8") !== text);
  for (const [name] of stale) console.error(`src/lagging/render/web/${name} is stale: make web`);
  if (!stale.length) console.log(`${[...files.keys()].join(", ")}: fresh`);
  process.exit(stale.length ? 1 : 0);
}
mkdirSync(OUT, { recursive: true });
for (const [name, text] of files) {
  writeFileSync(join(OUT, name), text);
  console.log(`src/lagging/render/web/${name}  ${Buffer.byteLength(text)} bytes`);
}
