import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { ApiError, type ObjectList, type WatchEvent } from "../adapters/kubeapi/index.ts";
import type { ConfigMapVersion, Follow } from "../config/index.ts";
import { manyListeners } from "../lib/abort.ts";
import { FakeClock } from "../lib/clock.ts";
import { silent } from "../lib/log.ts";
import type { ConfigMap, Node } from "../model/generated/types.ts";
import { CONFIG_SOURCE_ANNOTATION } from "./config-assignment.ts";
import { ConfigFollower } from "./config-follower.ts";

/** A server with ConfigMaps, a node, and a configuration that writes down what is done to it. */
class Scene {
  readonly clock = new FakeClock();
  readonly done: string[] = [];
  followed: Follow | undefined;
  /** Thrown by the next reads. */
  refusal: ApiError | undefined;
  /** Thrown by the next assignment. */
  full: Error | undefined;
  private readonly maps = new Map<string, ConfigMap>();
  private readonly watches = new Map<string, (event: WatchEvent<ConfigMap>) => void>();
  private readonly listeners = new Set<(node: Node) => void>();
  private readonly stop = manyListeners();
  private version = 10;
  current: Node | undefined;

  constructor(t: TestContext) {
    const follower = new ConfigFollower(
      {
        clock: this.clock,
        log: silent,
        random: () => 0,
        node: this,
        // Only ConfigMaps are asked for here.
        api: { list: this.list, watch: this.watch } as unknown as ConstructorParameters<
          typeof ConfigFollower
        >[0]["api"],
        dynamic: {
          assign: async (text: string, { uid, resourceVersion, key }: ConfigMapVersion) => {
            if (this.full !== undefined) throw this.full;
            this.done.push(`assign ${uid}/${resourceVersion}/${key} ${text}`);
          },
          release: async () => void this.done.push("release"),
          follow: (followed) => {
            this.followed = followed;
          },
        },
      },
      "n1",
    );
    const running = follower.run(this.stop.signal);
    t.after(async () => {
      this.stop.abort();
      await running;
    });
  }

  onNode(fn: (node: Node) => void): void {
    this.listeners.add(fn);
  }

  /** The node is seen with this annotation. */
  async node(annotation?: string): Promise<void> {
    const annotations: Record<string, string> =
      annotation === undefined ? {} : { [CONFIG_SOURCE_ANNOTATION]: annotation };
    await this.see({ metadata: { name: "n1", annotations }, spec: {} });
  }

  async see(node: Node): Promise<void> {
    this.current = node;
    for (const listener of this.listeners) listener(node);
    await this.clock.advance(0);
  }

  async put(name: string, uid: string, data: Record<string, string>): Promise<void> {
    const resourceVersion = String(++this.version);
    const object: ConfigMap = { metadata: { name, namespace: "ops", uid, resourceVersion }, data };
    this.maps.set(name, object);
    this.watches.get(name)?.({ type: "MODIFIED", object, resourceVersion });
    await this.clock.advance(0);
  }

  async remove(name: string): Promise<void> {
    const object = this.maps.get(name);
    this.maps.delete(name);
    if (object !== undefined) {
      this.watches.get(name)?.({ type: "DELETED", object, resourceVersion: String(++this.version) });
    }
    await this.clock.advance(0);
  }

  get watched(): string[] {
    return [...this.watches.keys()];
  }

  private readonly list = async (_: unknown, query: { fieldSelector?: string }): Promise<ObjectList<ConfigMap>> => {
    if (this.refusal !== undefined) throw this.refusal;
    const found = this.maps.get(nameIn(query));
    const items = found === undefined ? [] : [found];
    return { items, resourceVersion: String(this.version), continueToken: "" };
  };

  private readonly watch = async (_: unknown, query: { fieldSelector?: string }, { signal }: AbortController) => {
    const name = nameIn(query);
    const pending: WatchEvent<ConfigMap>[] = [];
    let more: () => void = () => undefined;
    this.watches.set(name, (event) => {
      pending.push(event);
      more();
    });
    signal.addEventListener("abort", () => {
      this.watches.delete(name);
      more();
    });
    return (async function* () {
      while (!signal.aborted) {
        const event = pending.shift();
        if (event !== undefined) yield event;
        else await new Promise<void>((resolve) => (more = resolve));
      }
    })();
  };
}

function nameIn({ fieldSelector = "" }: { fieldSelector?: string }): string {
  return fieldSelector.replace("metadata.name=", "");
}

test("until the node is known nothing is done: what the agent started with stays", async (t) => {
  const scene = new Scene(t);
  await scene.clock.advance(60_000);
  assert.deepEqual(scene.done, []);
});

test("each version of the named ConfigMap is assigned, and of another one when that is named", async (t) => {
  const scene = new Scene(t);
  await scene.put("a", "u", { kubelet: "one", other: "x" });
  await scene.put("b", "v", { kubelet: "two" });
  await scene.node("ops/a");
  await scene.put("a", "u", { kubelet: "three" });
  await scene.node("ops/b");
  assert.deepEqual(scene.done, ["assign u/11/kubelet one", "assign u/13/kubelet three", "assign v/12/kubelet two"]);
  assert.deepEqual(scene.watched, ["b"]);
  assert.deepEqual(scene.followed, { by: "the annotation kubelet-ts/config-source of the Node" });
});

test("a node that names nothing goes back to the local configuration, and nothing is watched", async (t) => {
  const scene = new Scene(t);
  await scene.put("a", "u", { kubelet: "one" });
  await scene.node("ops/a");
  await scene.node();
  assert.deepEqual(scene.done, ["assign u/11/kubelet one", "release"]);
  assert.equal(scene.followed, undefined);
  assert.deepEqual(scene.watched, []);
});

test("a ConfigMap that is deleted is told of and takes nothing back; made anew it is assigned", async (t) => {
  const scene = new Scene(t);
  await scene.put("a", "u", { kubelet: "one" });
  await scene.node("ops/a");
  await scene.remove("a");
  assert.equal(scene.followed?.error, "there is no ConfigMap ops/a");
  assert.deepEqual(scene.done, ["assign u/11/kubelet one"]);
  await scene.put("a", "w", { kubelet: "two" });
  assert.equal(scene.followed?.error, undefined);
  assert.deepEqual(scene.done, ["assign u/11/kubelet one", "assign w/13/kubelet two"]);
});

test("a refusal names the Role and the RoleBinding, and once they are there it goes on by itself", async (t) => {
  const scene = new Scene(t);
  scene.refusal = new ApiError("Forbidden", "no");
  await scene.put("a", "u", { kubelet: "one" });
  await scene.node("ops/a");
  const said = scene.followed?.error ?? "";
  for (const word of ["Role in namespace ops", "get, list and watch", "named a,", "RoleBinding", "system:node:n1"]) {
    assert.ok(said.includes(word), `${word} in ${said}`);
  }
  await scene.clock.advance(60_000);
  assert.equal(scene.followed?.error, said);
  scene.refusal = undefined;
  await scene.clock.advance(15_000);
  assert.deepEqual(scene.done, ["assign u/11/kubelet one"]);
  assert.equal(scene.followed?.error, undefined);
});

test("a key that is not there and an annotation that says nothing are told of; the one in force stays", async (t) => {
  const scene = new Scene(t);
  await scene.put("a", "u", { kubelet: "one" });
  await scene.node("ops/a/other");
  assert.equal(scene.followed?.error, "ConfigMap ops/a has no data named other");
  await scene.node("nonsense");
  assert.match(scene.followed?.error ?? "", /"nonsense" is not NAMESPACE\/NAME/);
  assert.deepEqual(scene.done, []);
});

test("the UID that a server of v1.9 names must be the ConfigMap's", async (t) => {
  const scene = new Scene(t);
  await scene.put("a", "u", { kubelet: "one" });
  const named = (uid: string): Node => {
    const configSource = { configMapRef: { namespace: "ops", name: "a", uid } };
    return { metadata: { name: "n1" }, spec: { configSource } } as Node; // reason: the shape of an old server
  };
  await scene.see(named("x"));
  assert.equal(scene.followed?.error, "ConfigMap ops/a has the UID u, and x is wanted");
  assert.deepEqual(scene.done, []);
  await scene.see(named("u"));
  assert.deepEqual(scene.done, ["assign u/11/kubelet one"]);
});

test("a disk that is full is told of and tried again", async (t) => {
  const scene = new Scene(t);
  scene.full = new Error("ENOSPC");
  await scene.put("a", "u", { kubelet: "one" });
  await scene.node("ops/a");
  assert.equal(scene.followed?.error, "ENOSPC");
  scene.full = undefined;
  await scene.clock.advance(2000);
  assert.deepEqual(scene.done, ["assign u/11/kubelet one"]);
  assert.equal(scene.followed?.error, undefined);
});
