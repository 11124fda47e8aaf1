// SPDX-License-Identifier: Apache-2.0
/** Which of many systems are shown: by family, and by a text in their names. */

import { fill, h } from "../ui";
import { MANY, families } from "./families";
import { short } from "./format";
import { sign } from "./parts";
import type { State } from "./state";

export function filter(body: HTMLElement, state: State): void {
  const names = state.data.systems.map((one) => one.name);
  if (names.length <= MANY) return;
  const groups = families(names);
  const off = new Set<number>();
  let wanted = "";
  const told = h("span", { role: "status", class: "quiet small", id: "shown" });
  const update = (): void => {
    const left = new Set([...off].flatMap((g) => groups[g]?.members ?? []));
    const hidden = new Set(names.flatMap((name, s) => (left.has(s) || !name.toLocaleLowerCase().includes(wanted) ? [s] : [])));
    told.textContent = `${names.length - hidden.size} of ${names.length} systems shown`;
    state.set({ hidden });
  };
  const boxes = groups.map(({ name, members }, g) =>
    h(
      "label",
      { class: "box" },
      h("input", {
        type: "checkbox",
        checked: true,
        onchange: (event: Event) => {
          if ((event.target as HTMLInputElement).checked) off.delete(g);
          else off.add(g);
          update();
        },
      }),
      h("span", {}, sign(members[0] ?? 0), h("bdi", {}, short(name || "settings", 40)), h("span", { class: "quiet small" }, ` ${members.length}`)),
    ),
  );
  told.textContent = `${names.length} systems`;
  fill(
    body,
    h(
      "fieldset",
      { class: "tools filter noprint" },
      h("legend", { class: "aloud" }, "Systems shown"),
      ...boxes,
      h("label", { class: "field" }, h("span", {}, "name"), h("input", { type: "search", id: "filter", placeholder: "such as k=3", oninput: (event: Event) => {
        wanted = (event.target as HTMLInputElement).value.trim().toLocaleLowerCase();
        update();
      } })),
      told,
    ),
  );
}
