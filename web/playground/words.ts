// SPDX-License-Identifier: Apache-2.0
/** What the page says of metrics, and of the schedule that is shown. */

import { type Name, type Sentence, al, cutoff, dal, lags, scores, waits } from "../src/arithmetic";
import { shown } from "../src/ui";

export const MEANING: Record<Name | "cost", { title: string; text: string }> = {
  DAL: {
    title: "Differentiable Average Lagging",
    text: "The lag behind the ideal translator once every token takes d to write. A lag, once there, stays.",
  },
  cost: {
    title: "DAL with the write cost of the slider",
    text: "The same, if writing a token takes d, whatever the lengths are.",
  },
  AL: {
    title: "Average Lagging",
    text: "How many source tokens behind the ideal, averaged up to τ. Writing is free until τ: that is how AL is gamed.",
  },
  AL_y: {
    title: "AL over all of y",
    text: "AL without its cut-off: what is written after the end of the source comes for free, and pulls it down.",
  },
  LAAL: {
    title: "Length-Adaptive AL",
    text: "AL at the pace of the longer one of output and reference, so that writing too much is no gain.",
  },
  YAAL: {
    title: "Yet Another AL",
    text: "LAAL over the tokens written before the source ended. Undefined if there are none.",
  },
  ATD: {
    title: "Average Token Delay",
    text: "How long after its source token each target token ends; both last 1.",
  },
  AP: {
    title: "Average Proportion",
    text: "Which part of the source had been read, on average. Depends on length: wait-1 gets 0.75 at 2 tokens, 0.5 at many.",
  },
  CW: {
    title: "Consecutive Wait",
    text: "Source tokens per run of reads. Looks at each pause alone, and does not see a lag that adds up.",
  },
};

/** The order in which they are shown. */
export const ORDER = ["DAL", "cost", "AL", "AL_y", "LAAL", "YAAL", "ATD", "AP", "CW"] as const;

/** Why a metric has no value. */
export function reason(name: Name | "cost", s: Sentence): string {
  if (!s.delays.length) return "nothing is written";
  if (!s.sourceLength) return "there is no source";
  if (name === "CW") return "nothing is read";
  return "nothing is written before the source ends";
}

/** What is worth noticing in a schedule, most important first. */
export function remarks(s: Sentence): string[] {
  const [x, y] = [s.sourceLength, s.delays.length];
  if (!y) return ["Nothing is written: there is no latency to measure."];
  if (!x) return ["Nothing is to be read: there is no latency to measure."];
  const found: string[] = [];
  const tau = cutoff(s);
  const gap = dal(s) - al(s);
  const free = waits(s.delays.slice(0, tau)).filter((wait, t) => wait === 0 && t > 0).length;
  const ahead = lags(s).slice(0, tau).filter((lag) => lag < -1e-9).length;
  const many = (n: number): string => (n === 1 ? "1 token" : `${n} tokens`);
  if (gap > 1e-9 && free)
    found.push(
      `AL is ${shown(gap, 2)} below DAL: up to τ = ${tau}, ${many(free)} ${free === 1 ? "is" : "are"} written without a` +
        " read, and AL takes that for speaking in no time.",
    );
  else if (gap > 1e-9 && !ahead)
    found.push(`AL is ${shown(gap, 2)} below DAL: in DAL a lag, once there, stays, also for the tokens after τ.`);
  else if (gap <= 1e-9) found.push(`AL and DAL agree on ${shown(al(s), 2)}.`);
  if (ahead)
    found.push(`${many(ahead)} ${ahead === 1 ? "comes" : "come"} before the ideal translator’s; AL gives credit for it, DAL does not.`);
  const uncounted = y - tau;
  if ((s.delays.at(-1) ?? 0) < x) found.push("The source is never read to its end, so AL counts all tokens: τ = |y|.");
  else if (uncounted)
    found.push(`The source has been read at τ = ${tau}; AL does not look at the ${many(uncounted)} after it.`);
  if (Number.isNaN(scores(s).YAAL)) found.push("Everything is written after the end of the source: this is offline translation.");
  return found;
}
