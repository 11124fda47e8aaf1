// SPDX-License-Identifier: Apache-2.0
/** The comparison as LaTeX and CSV, as it stands on the page: its order, its columns. */

import { arrow, plain, unitName } from "./format";
import type { Compared, Metric } from "./types";

const LATEX: Record<string, string> = {
  "\\": "\\textbackslash{}",
  "{": "\\{",
  "}": "\\}",
  "&": "\\&",
  "%": "\\%",
  $: "\\$",
  "#": "\\#",
  _: "\\_",
  "~": "\\textasciitilde{}",
  "^": "\\textasciicircum{}",
};

/** Text that LaTeX takes as text: one line, no control characters. */
export function tex(text: string): string {
  return text.replace(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, " ").replace(/[\\{}&%$#_~^]/g, (letter) => LATEX[letter] ?? letter);
}

/** A field of CSV; one that a spreadsheet would take for a formula gets a quote before it. */
export function field(text: string): string {
  const safe = /^[=+\-@\t\r]/.test(text) && !/^-?[\d.]+$/.test(text) ? `'${text}` : text;
  return /[",\n\r\u2028\u2029]/.test(safe) || safe !== text ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** Which systems have the best value of a metric, as it is shown, or share a letter with one that has. */
export function best(scores: Compared["scores"], metric: Metric, at: number): Set<number> {
  if (metric.higher === null) return new Set();
  const values = scores.map((row) => row[at]?.value ?? null);
  const some = values.filter((value) => value !== null);
  const most = metric.higher ? Math.max(...some) : Math.min(...some);
  const text = plain(most, metric.unit);
  const first = values.flatMap((value, system) => (value !== null && plain(value, metric.unit) === text ? [system] : []));
  const mark = (system: number): string => scores[system]?.[at]?.mark ?? "";
  const letters = new Set(first.flatMap((system) => [...mark(system)].filter((letter) => /[a-z]/.test(letter))));
  return new Set([...first, ...values.flatMap((value, system) => (value !== null && [...mark(system)].some((letter) => letters.has(letter)) ? [system] : []))]);
}

export interface Shown {
  readonly names: readonly string[];
  readonly metrics: readonly Metric[];
  readonly compared: Compared;
  /** Places of the systems and metrics, in the order in which they are shown. */
  readonly rows: readonly number[];
  readonly columns: readonly number[];
}

/** A number with a minus that LaTeX sets as one. */
function minus(value: number | null, unit: string): string {
  return plain(value, unit).replace(/^-/, "$$-$$");
}

/** A booktabs table; signatures as comments. */
export function latex({ names, metrics, compared, rows, columns }: Shown): string {
  const signs: Record<string, string> = { "↑": " $\\uparrow$", "↓": " $\\downarrow$", "": "" };
  const heads = columns.map((c) => {
    const m = metrics[c];
    const unit = unitName(m?.unit ?? "");
    return m ? `${tex(m.name)}${signs[arrow(m.higher)] ?? ""}${unit && ` (${unit})`}` : "";
  });
  const lines = rows.map((s) => {
    const cells = columns.map((c) => {
      const [one, m] = [compared.scores[s]?.[c], metrics[c]];
      if (!one || !m || one.value === null) return "--";
      const value = minus(one.value, m.unit);
      const bold = best(compared.scores, m, c).has(s) ? `\\textbf{${value}}` : value;
      const ends = one.low === null ? "" : ` {\\small [${minus(one.low, m.unit)}, ${minus(one.high, m.unit)}]}`;
      return `${bold}${one.mark && `$^{${tex(one.mark).replace("≠", "\\neq")}}$`}${ends}`;
    });
    return `${[tex(names[s] ?? ""), ...cells].join(" & ")} \\\\`;
  });
  const signatures = columns.flatMap((c) => [...new Set(rows.map((s) => compared.scores[s]?.[c]?.signature ?? ""))]);
  return [
    ...[...signatures, compared.signature ?? ""].filter((text) => text).map((text) => `% ${tex(text).replaceAll("\\", "")}`),
    `% ${compared.how}`,
    `\\begin{tabular}{l${"r".repeat(columns.length)}}`,
    "\\toprule",
    `${["system", ...heads].join(" & ")} \\\\`,
    "\\midrule",
    ...lines,
    "\\bottomrule",
    "\\end{tabular}",
    "",
  ].join("\n");
}

/** A row per system and metric, with all digits, in the unit of the log. */
export function csv({ names, metrics, compared, rows, columns }: Shown): string {
  const number = (value: number | null | undefined): string => (value === null || value === undefined ? "" : String(value));
  const head = ["system", "metric", "value", "low", "high", "unit", "n", "undefined", "mark", "signature"];
  const lines = rows.flatMap((s) =>
    columns.map((c) => {
      const [one, m] = [compared.scores[s]?.[c], metrics[c]];
      const cells = [names[s] ?? "", m?.name ?? "", number(one?.value), number(one?.low), number(one?.high), m?.unit ?? ""];
      return [...cells, number(compared.n), number(one?.undefined), one?.mark ?? "", one?.signature ?? ""].map(field).join(",");
    }),
  );
  return `${[head.join(","), ...lines].join("\n")}\n`;
}
