import assert from "node:assert/strict";
import { test } from "node:test";
import { ApiError, CONFIG_MAPS, type KubeApi, type KubeObject } from "../adapters/kubeapi/index.ts";
import { FakeClock } from "../lib/clock.ts";
import { silent } from "../lib/log.ts";
import type { ConfigMap } from "../model/generated/types.ts";
import { Informers } from "./informers.ts";

const map = (name: string, version: number): ConfigMap => ({
  metadata: { name, namespace: "default", uid: `uid of ${name}`, resourceVersion: String(version) },
});

/** An API whose watches end with "gone" when the test says so; the next list is what the test gives then. */
class FailingWatch implements Pick<KubeApi, "list" | "watch"> {
  items: readonly ConfigMap[] = [];
  version = 1;
  private fail: (error: ApiError) => void = () => undefined;

  list: KubeApi["list"] = async <T>() => ({
    items: this.items as unknown as readonly T[], // reason: only this kind is asked for
    resourceVersion: String(this.version),
    continueToken: "",
  });

  watch: KubeApi["watch"] = async (_resource, _query, { signal }) => {
    const ended = new Promise<never>((_resolve, reject) => {
      this.fail = reject;
      signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
    });
    return (async function* () {
      await ended;
      yield* [];
    })();
  };

  gone(version: number, items: readonly ConfigMap[]): void {
    this.version = version;
    this.items = items;
    this.fail(new ApiError("Gone", "too old"));
  }
}

test("what was written and is not in a later list is gone, what is newer than the list stays", async (t) => {
  const stop = new AbortController();
  t.after(() => stop.abort());
  const clock = new FakeClock();
  const api = new FailingWatch();
  const informer = new Informers({ api, clock, log: silent }, stop.signal).of(CONFIG_MAPS);
  const gone: (string | undefined)[] = [];
  const follow = ({ kind, object }: { readonly kind: string; readonly object: KubeObject }): void => {
    if (kind === "deleted") gone.push(object.metadata.name);
  };
  informer.onChange(follow, stop);
  await clock.advance(0);
  for (const [name, version] of [
    ["lost", 5],
    ["kept", 6],
    ["newer", 11],
  ] as const) {
    informer.wrote(map(name, version));
  }
  api.gone(10, [map("kept", 6)]);
  await clock.advance(60_000);
  const names = informer.list().map(({ metadata }) => metadata.name);
  assert.deepEqual([[...names].sort(), gone], [["kept", "newer"], ["lost"]]);
  informer.wrote(map("lost", 5));
  assert.equal(informer.get("default", "lost"), undefined);
});

test("what was written is not replaced by an older version from a list", async (t) => {
  const stop = new AbortController();
  t.after(() => stop.abort());
  const clock = new FakeClock();
  const api = new FailingWatch();
  const informer = new Informers({ api, clock, log: silent }, stop.signal).of(CONFIG_MAPS);
  await clock.advance(0);
  informer.wrote(map("mine", 11));
  api.gone(10, [map("mine", 6)]);
  await clock.advance(60_000);
  assert.equal(informer.get("default", "mine")?.metadata.resourceVersion, "11");
});
