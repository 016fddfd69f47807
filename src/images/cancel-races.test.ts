import assert from "node:assert/strict";
import { test } from "node:test";
import { pod } from "../../test/support/pods.ts";
import type { RuntimeImage } from "../adapters/runtime/port.ts";
import { AbortedError, manyListeners } from "../lib/abort.ts";
import { FakeClock } from "../lib/clock.ts";
import { fixed } from "../lib/live.ts";
import { silent } from "../lib/log.ts";
import type { PullCredential } from "../model/pull-credential.ts";
import { ImagePuller } from "./puller.ts";
import { PullVerifier } from "./verification/pull-verifier.ts";
import { RecordStore } from "./verification/record-store.ts";

const IMAGE = "r.example.com/private/app:1";
const FOUND: RuntimeImage = { id: "sha256:1", tags: [IMAGE], digests: [], sizeBytes: 1, username: "", pinned: false };
/** What a write, and a call of the runtime, take: enough turns for everything else to happen in between. */
const TURNS = 4;

const secret = (name: string): PullCredential => ({
  auth: { username: name },
  owner: { kind: "Secret", uid: `uid-${name}`, namespace: "ns", name },
  hash: name,
});

async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) await Promise.resolve();
}

/** What a runtime does with a pull that is cancelled. */
type Runtime = "completes it" | "completes it and reports the abort" | "stops it";

/** A node whose runtime and disk take their time. */
class Node {
  readonly clock = new FakeClock();
  readonly files: Map<string, string>;
  readonly agent = manyListeners();
  readonly access: PullVerifier;
  isPresent = false;
  isAnswered = false;

  constructor(
    private readonly runtime: Runtime,
    files: ReadonlyMap<string, string> = new Map(),
  ) {
    this.files = new Map(files);
    const disk = {
      names: async (directory: string) =>
        [...this.files.keys()].flatMap((path) =>
          path.startsWith(`${directory}/`) ? [path.slice(directory.length + 1)] : [],
        ),
      read: async (path: string) => this.files.get(path),
      write: async (path: string, text: string) => {
        await turns(TURNS);
        this.files.set(path, text);
      },
      remove: async (path: string) => {
        await turns(TURNS);
        this.files.delete(path);
      },
    };
    const images = { listImages: async () => (this.isPresent ? [FOUND] : []) };
    this.access = new PullVerifier(
      { store: new RecordStore({ files: disk, log: silent }, "/root"), images, clock: this.clock, log: silent },
      { policy: "NeverVerifyPreloadedImages", allowlist: [] },
    );
  }

  private async pullImage(signal: AbortSignal): Promise<string> {
    for (let turn = 0; turn < TURNS; turn++) {
      await Promise.resolve();
      if (this.runtime === "stops it" && signal.aborted) throw signal.reason;
    }
    this.isPresent = true;
    await turns(TURNS);
    if (this.runtime === "completes it and reports the abort" && signal.aborted) throw signal.reason;
    this.isAnswered = true;
    return FOUND.id;
  }

  /** Pulls for a pod with the secret `owner`. */
  pull(signal: AbortSignal): Promise<unknown> {
    const images = {
      imageStatus: async () => {
        await turns(TURNS);
        return this.isPresent ? FOUND : undefined;
      },
      pullImage: (_name: string, _pull: unknown, options: { signal: AbortSignal }) => this.pullImage(options.signal),
    };
    const puller = new ImagePuller(
      // Nothing else is asked of it here.
      { images: images as never, clock: this.clock, credentials: async () => [secret("owner")], access: this.access },
      fixed({ parallel: 1, qps: 0, burst: 0 }),
      this.agent.signal,
    );
    const of = pod().container("app", { image: IMAGE, imagePullPolicy: "IfNotPresent" }).build();
    const [container = { name: "" }] = of.spec.containers;
    const step = { detail: () => undefined, done: () => undefined, fail: () => undefined, abort: () => undefined };
    const journal = { begin: () => step, event: () => undefined };
    return puller.ensure({ pod: of, container, journal, slot: { release: () => undefined } }, { signal });
  }

  /** True if a pod with this secret may use the image without a pull. */
  async isFree(name: string): Promise<boolean> {
    return !(await this.access.mustPull({ image: IMAGE, ref: FOUND.id }, async () => [secret(name)]));
  }

  kinds(): string {
    const kinds = [...this.files.keys()].map((path) => path.split("/")[3]);
    return kinds.sort().join(" ");
  }
}

/** More turns than a pull takes from its begin to its end. */
const MOST = 18 * TURNS;

for (const runtime of ["completes it", "completes it and reports the abort", "stops it"] as const) {
  test(`a pull that is cancelled at any moment, by a runtime that ${runtime}, never frees the image`, async () => {
    const outcomes = new Set<string>();
    for (let moment = 0; moment <= MOST; moment++) {
      const node = new Node(runtime);
      const caller = manyListeners();
      const pulled = node.pull(caller.signal).then(
        () => "pulled",
        () => "cancelled",
      );
      await turns(moment);
      caller.abort(new AbortedError());
      let checked: string | undefined;
      for (let turn = 0; turn < MOST; turn++) {
        await Promise.resolve();
        if (!node.isPresent) continue;
        const at = `cancelled after ${moment} turns, looked at after ${turn} more`;
        assert.equal(await node.isFree("stranger"), false, at);
        if (node.kinds() === checked) continue;
        checked = node.kinds();
        // The next agent, should this one be killed now.
        const next = new Node(runtime, node.files);
        next.isPresent = true;
        assert.equal(await next.isFree("stranger"), false, `${at}, by the next agent`);
      }
      const outcome = await pulled;
      await node.clock.advance(600_000);
      await turns(MOST);
      assert.equal(node.kinds(), node.isPresent ? "pulled" : "", `cancelled after ${moment} turns`);
      const isOwners = node.isPresent && (await node.isFree("owner"));
      if (outcome === "pulled") assert.ok(isOwners, `pulled, cancelled after ${moment} turns`);
      outcomes.add(`${outcome}, ${!node.isPresent ? "not there" : isOwners ? "of its owner" : "of nobody"}`);
    }
    const late = ["pulled, of its owner", "cancelled, of its owner"];
    const wanted = {
      // The answer says with which credential, also when nobody waits for it any more.
      "completes it": late,
      "completes it and reports the abort": [...late, "cancelled, of nobody"],
      "stops it": [...late, "cancelled, not there"],
    };
    for (const outcome of wanted[runtime]) assert.ok(outcomes.has(outcome), `${outcome} among ${[...outcomes]}`);
  });
}
