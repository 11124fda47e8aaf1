// SPDX-License-Identifier: Apache-2.0
/** Settings of one system: which systems belong together, and what tells them apart. */

export interface Family {
  readonly name: string;
  /** Places of its systems. */
  readonly members: readonly number[];
}

/** Of more systems than this, the settings of one system look alike, and can be filtered. */
export const MANY = 6;

/** `wait-k/3`, `wait-3`: the system, and its setting. */
function split(name: string): { readonly stem: string; readonly setting: string } | undefined {
  const start = name.slice(0, 500);
  const slash = start.lastIndexOf("/");
  if (slash > 0 && slash < start.length - 1) return { stem: start.slice(0, slash), setting: start.slice(slash + 1) };
  const found = /^(.*?)[-_@=: ]*(\d+(?:\.\d+)?)$/su.exec(start);
  return found ? { stem: found[1] ?? "", setting: found[2] ?? "" } : undefined;
}

/** Systems of which there are several settings: their names differ after a slash, or in a number at the end. */
export function families(names: readonly string[]): Family[] {
  const found = new Map<string, number[]>();
  names.forEach((name, system) => {
    const stem = split(name)?.stem;
    if (stem !== undefined) found.set(stem, [...(found.get(stem) ?? []), system]);
  });
  return [...found].filter(([, members]) => members.length > 1).map(([name, members]) => ({ name, members }));
}

/** What tells a system from the others of its family; of a system alone, its name. */
export function settings(names: readonly string[]): string[] {
  const together = new Set(families(names).flatMap((family) => family.members));
  return names.map((name, system) => (together.has(system) ? (split(name)?.setting ?? name) : name));
}

/** The look of each system, as a number: of many systems, that of its family. */
export function looks(names: readonly string[]): number[] {
  if (names.length <= MANY) return names.map((_, system) => system);
  const all = families(names);
  const of = new Map(all.flatMap(({ members }, look) => members.map((system) => [system, look])));
  let next = all.length;
  return names.map((_, system) => of.get(system) ?? next++);
}
