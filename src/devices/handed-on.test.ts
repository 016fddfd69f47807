import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { pod } from "../../test/support/pods.ts";
import type { Pod } from "../model/generated/types.ts";
import { HandedOn } from "./handed-on.ts";

const RESOURCE = "example.com/gpu";

/** What each container has, by name; of init containers those with `s` are sidecars. */
type Held = Readonly<Record<string, readonly string[] | undefined>>;

function podOf(names: readonly string[]): Pod {
  const built = names.reduce((of, name) => {
    if (name.startsWith("c")) return of.container(name);
    return of.init(name, name.startsWith("s") ? { restartPolicy: "Always" } : {});
  }, pod("web"));
  return built.build();
}

/** Who had a device last decides. */
function expected(names: readonly string[], held: Held, container: string): ReadonlySet<string> {
  const ids = new Set<string>();
  for (const name of names.slice(0, names.indexOf(container))) {
    for (const id of held[name] ?? []) {
      if (name.startsWith("i")) ids.add(id);
      else ids.delete(id);
    }
  }
  return ids;
}

describe("devices that init containers hand on", () => {
  const cases = [
    { name: "nothing comes before the first", held: {}, of: "i1", want: [] },
    { name: "an init container hands on what it has", held: { i1: ["a", "b"] }, of: "c1", want: ["a", "b"] },
    { name: "what the latest one hands on comes first", held: { i1: ["a"], i2: ["b"] }, of: "c1", want: ["b", "a"] },
    { name: "a sidecar keeps what it took over", held: { i1: ["a", "b"], s1: ["a"] }, of: "c1", want: ["b"] },
    { name: "a sidecar keeps all that it took over", held: { i1: ["a"], s1: ["a"] }, of: "c1", want: [] },
    { name: "so does a regular container", held: { i1: ["a", "b"], c1: ["b"] }, of: "c2", want: ["a"] },
    { name: "no more than asked for", held: { i1: ["a", "b", "c"] }, of: "c1", want: ["a", "b"], most: 2 },
  ];
  for (const { name, held, of, want, most = 9 } of cases) {
    test(name, () => {
      const known: Held = held;
      const handedOn = new HandedOn(podOf(["i1", "s1", "i2", "c1", "c2"]), (container) => known[container]);
      assert.deepEqual(handedOn.before(of, RESOURCE, most), want);
    });
  }

  test("are what a search through all earlier containers finds, in any order and after changes", () => {
    const letters = fc.constantFrom("a", "b", "c", "d");
    const part = fc.record({ kind: fc.constantFrom("i", "i", "s", "c"), ids: fc.option(fc.uniqueArray(letters)) });
    const steps = fc.array(fc.record({ at: fc.nat(), change: fc.option(fc.uniqueArray(letters)) }));
    fc.assert(
      fc.property(fc.array(part, { minLength: 1, maxLength: 7 }), steps, (parts, asked) => {
        const sorted = [...parts.filter(({ kind }) => kind !== "c"), ...parts.filter(({ kind }) => kind === "c")];
        const names = sorted.map(({ kind }, at) => `${kind}${at}`);
        const held: Record<string, readonly string[] | undefined> = {};
        for (const [at, { ids }] of sorted.entries()) held[names[at] ?? ""] = ids ?? undefined;
        const handedOn = new HandedOn(podOf(names), (container) => held[container]);
        for (const { at, change } of [...names.map((_, place) => ({ at: place, change: null })), ...asked]) {
          const container = names[at % names.length] ?? "";
          const found = handedOn.before(container, RESOURCE, Number.POSITIVE_INFINITY);
          assert.deepEqual(new Set(found), expected(names, held, container));
          if (change === null) continue;
          held[container] = change;
          handedOn.changed(container);
        }
      }),
    );
  });
});
