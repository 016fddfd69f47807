import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ApiError, type ObjectRef, PERSISTENT_VOLUME_CLAIMS } from "../adapters/kubeapi/index.ts";
import { manyListeners } from "../lib/abort.ts";
import type { PersistentVolumeClaim } from "../model/generated/types.ts";
import { GroupedReads } from "./grouped-reads.ts";

const never = { signal: manyListeners().signal };
const claim = (name: string): PersistentVolumeClaim => ({ metadata: { name }, spec: {} });

/** A server of the claims a and b; `together` answers for a group. */
function reads(together?: (names: readonly string[]) => Promise<readonly (PersistentVolumeClaim | undefined)[]>) {
  const asked: string[] = [];
  const api = {
    get: async (_resource: unknown, { name }: ObjectRef) => {
      asked.push(name);
      if (name === "broken") throw new ApiError("Forbidden", "no");
      if (name !== "a" && name !== "b") throw new ApiError("NotFound", "none");
      return claim(name);
    },
    ...(together && {
      getTogether: (_resource: unknown, refs: readonly ObjectRef[]) => {
        const names = refs.map(({ name }) => name);
        asked.push(names.join("+"));
        return together(names);
      },
    }),
  };
  const grouped = new GroupedReads(api as never, PERSISTENT_VOLUME_CLAIMS, never.signal);
  const read = async (name: string, options = never): Promise<string | undefined> =>
    (await grouped.get({ namespace: "ns", name }, options))?.metadata.name;
  return { asked, read };
}

const all = async (names: readonly string[]): Promise<readonly PersistentVolumeClaim[]> => names.map(claim);

describe("claims that are asked for at the same moment", () => {
  test("are read together, later ones by themselves", async () => {
    const { asked, read } = reads(all);
    assert.deepEqual(await Promise.all(["a", "b"].map((name) => read(name))), ["a", "b"]);
    await read("b");
    assert.deepEqual(asked, ["a+b", "b"]);
  });

  test("are read one by one where that cannot be done", async () => {
    const { asked, read } = reads();
    assert.deepEqual(await Promise.all(["a", "b"].map((name) => read(name))), ["a", "b"]);
    assert.deepEqual(asked, ["a", "b"]);
  });

  test("that are not found together are read alone: one does not exist, one is refused", async () => {
    const { asked, read } = reads(async ([first = ""]) => [claim(first), undefined, undefined]);
    const found = await Promise.allSettled(["a", "none", "broken"].map((name) => read(name)));
    assert.deepEqual(found.slice(0, 2), [
      { status: "fulfilled", value: "a" },
      { status: "fulfilled", value: undefined },
    ]);
    assert.equal(found[2]?.status === "rejected" && String(found[2].reason), "ApiError: no");
    assert.deepEqual(asked, ["a+none+broken", "none", "broken"]);
  });

  test("all fail with what reading them together fails with: that is a bug, or the end of the agent", async () => {
    const { asked, read } = reads(() => Promise.reject(new TypeError("bug")));
    const found = await Promise.allSettled(["a", "b"].map((name) => read(name)));
    assert.deepEqual(
      found.map((one) => one.status === "rejected" && String(one.reason)),
      ["TypeError: bug", "TypeError: bug"],
    );
    assert.deepEqual(asked, ["a+b"]);
  });

  test("do not wait for each other when one is given up", async () => {
    const stop = new AbortController();
    const { read } = reads(() => new Promise(() => undefined));
    const found = [read("a", { signal: stop.signal }), read("b")];
    await Promise.resolve();
    stop.abort(new Error("gone"));
    await assert.rejects(found[0] ?? Promise.resolve(), /gone/);
  });
});
