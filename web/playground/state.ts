// SPDX-License-Identifier: Apache-2.0
/** What the page shows, and how it stands in the address: `#a=wait-4:5:5&b=RRRRWWWWRW&d=0.5&r=6`. */

import { type Policy, nameOf, policy, schedule } from "../src/policies";
import { type Schedule, NoAction, parse, write } from "../src/schedule";

/** As many tokens, on either side, are drawn at most. */
export const MOST = 60;
/** Nothing costs more than so many source tokens. */
export const DEAREST = 20;

export interface System {
  readonly schedule: Schedule;
  /** The policy that made the schedule; none if it was made by hand. */
  readonly policy?: Policy | undefined;
}

export interface State {
  /** One schedule, or two to compare. */
  readonly systems: readonly System[];
  /** d, if it is not |x|/|y|. */
  readonly cost?: number | undefined;
  /** |y*|, if it is not |y|. */
  readonly reference?: number | undefined;
}

/** A table of the paper: its systems, and what it shows. */
export interface Preset {
  readonly name: string;
  readonly title: string;
  readonly systems: readonly (readonly [name: string, x: number, y: number])[];
  readonly story: string;
}

export const PRESETS: readonly Preset[] = [
  {
    name: "Table 1",
    title: "Why AL stops at τ",
    systems: [["wait-1", 4, 4], ["wait-3", 4, 4]],
    story:
      "wait-k should have a lag of k. AL says 1 and 3, because it stops counting at τ, where the whole source has been" +
      " read. AL_y counts on: the tokens after the end seem to be written in no time, and wait-3 gets only 2.25.",
  },
  {
    name: "Table 2",
    title: "How AL is gamed",
    systems: [["wait-4", 5, 5], ["antagonist-4", 5, 5]],
    story:
      "The second system only delays its last read. No token is there any sooner, and yet AL falls from 4 to 2.2." +
      " Writing is free until τ, and the late read moves τ to the last token.",
  },
  {
    name: "Table 3",
    title: "DAL without τ",
    systems: [["wait-1", 4, 4], ["wait-3", 4, 4]],
    story:
      "DAL lets every token take its time, d. So tokens after the end of the source come one after the other (○), the" +
      " lag stays what it is, and no cut-off is needed: wait-1 gets 1, wait-3 gets 3.",
  },
  {
    name: "Table 4",
    title: "DAL is not gamed",
    systems: [["wait-4", 5, 5], ["antagonist-4", 5, 5]],
    story:
      "Both systems of Table 2 have the same ○: whoever writes four tokens at once still has to speak them one after the" +
      " other. DAL is 4 for both.",
  },
  {
    name: "Table 5",
    title: "A longer target",
    systems: [["wait-1", 3, 6], ["wait-1-catchup", 3, 6]],
    story:
      "The target is twice as long as the source, so a token takes only half of the time: d = 0.5. Without catch-up the" +
      " system reads too fast and stays behind; with catch-up DAL is 1, the one token it waited for. AL says 0.8, less than" +
      " it waited.",
  },
  {
    name: "Table 6",
    title: "A shorter target",
    systems: [["wait-1", 6, 3]],
    story:
      "The target is half as long, d = 2. The system writes faster than the ideal, and AL credits it for that: 0. In DAL" +
      " nobody outpaces the ideal, since writing takes both of them the same time: 1.",
  },
];

/** The first thing to see: how AL is gamed. */
export const FIRST = 1;

/** A system of a policy and two lengths. */
export function made(found: Policy, x: number, y: number): System {
  return { schedule: schedule(found, x, y), policy: found };
}

/** What a preset shows. */
export function preset({ systems }: Preset): State {
  return {
    systems: systems.map(([name, x, y]) => {
      const found = policy(name);
      if (!found) throw new Error(`no policy is called ${name}`);
      return made(found, x, y);
    }),
  };
}

/** A system as text: a policy with lengths, or actions. */
function systemText({ schedule, policy }: System): string {
  if (!policy) return write(schedule);
  return `${nameOf(policy)}:${schedule.sourceLength}:${schedule.delays.length}`;
}

/** The state as the fragment of an address, without `#`. */
export function encode({ systems, cost, reference }: State): string {
  const [a, b] = systems.map(systemText);
  const parts: [string, string | number | undefined][] = [["a", a], ["b", b], ["d", cost], ["r", reference]];
  // = stands in wait-3-catchup=0.5 and : before the lengths: both may stand in a fragment as they are
  return parts.flatMap(([key, value]) => (value === undefined ? [] : [`${key}=${value}`])).join("&");
}

/** A number between two others, or a complaint. */
function number(text: string, least: number, most: number, what: string): number {
  const value = /^\d+(\.\d+)?$/.test(text) ? Number(text) : NaN;
  if (!(value >= least && value <= most)) throw new Error(`${what} must be a number from ${least} to ${most}`);
  return value;
}

/** A system from its text. Throws with words that can be shown. */
export function system(text: string): System {
  if (text.length > 10 * MOST) throw new Error(`a schedule has at most ${MOST} reads and ${MOST} writes`);
  const [name = "", x, y, ...more] = text.split(":");
  if (x !== undefined && y !== undefined && !more.length) {
    const found = policy(name);
    if (!found) throw new Error("there is no policy of that name");
    const lengths = [x, y].map((length) => number(length, 1, MOST, "a length"));
    if (lengths.some((length) => !Number.isInteger(length))) throw new Error("a length must be a whole number");
    return made(found, lengths[0] ?? 1, lengths[1] ?? 1);
  }
  const schedule = parse(text);
  if (Math.max(schedule.sourceLength, schedule.delays.length) > MOST)
    throw new Error(`a schedule has at most ${MOST} reads and ${MOST} writes`);
  return { schedule };
}

/** The state that an address stands for, and what could not be read of it. Whatever stands there, it does not throw. */
export function decode(fragment: string): { state: State; faults: string[] } {
  const found = new Map<string, string>();
  const faults: string[] = [];
  for (const part of fragment.replace(/^#/, "").split("&")) {
    const [, key, value] = /^([abdr])=(.*)$/s.exec(part) ?? [];
    try {
      if (key !== undefined && value !== undefined) found.set(key, decodeURIComponent(value.replaceAll("+", " ")));
      else if (part) faults.push("Part of the address means nothing here.");
    } catch {
      faults.push("Part of the address is not readable.");
    }
  }
  const read = <T>(key: string, how: (text: string) => T): T | undefined => {
    const text = found.get(key);
    if (text === undefined) return undefined;
    try {
      return how(text);
    } catch (error) {
      faults.push(`The ${error instanceof NoAction ? "schedule" : "address"} cannot be read: ${(error as Error).message}.`);
      return undefined;
    }
  };
  const systems = [read("a", system), read("b", system)].filter((one) => one !== undefined);
  const first = PRESETS[FIRST];
  const state: State = {
    systems: systems.length || !first ? systems : preset(first).systems,
    cost: read("d", (text) => number(text, 0, DEAREST, "the write cost")),
    reference: read("r", (text) => Math.round(number(text, 1, 2 * MOST, "the length of the reference"))),
  };
  return { state, faults: [...new Set(faults)] };
}
