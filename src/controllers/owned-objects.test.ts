import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type KubeApi, PODS, REPLICA_SETS } from "../adapters/kubeapi/index.ts";
import type { ObjectMeta, Pod, ReplicaSet } from "../model/generated/types.ts";
import type { Informer } from "./informers.ts";
import { claimObjects, controllerReference } from "./owned-objects.ts";

const { signal } = new AbortController();
const labels = { app: "a" };

function setOf(metadata: Partial<ObjectMeta> = {}): ReplicaSet {
  return {
    metadata: { name: "a", namespace: "default", uid: "owner", ...metadata },
    spec: { selector: { matchLabels: labels } },
  };
}

function podOf(name: string, metadata: Partial<ObjectMeta> = {}): Pod {
  return { metadata: { name, namespace: "default", uid: name, labels, ...metadata }, spec: { containers: [] } };
}

const owned = { ownerReferences: [controllerReference({ resource: REPLICA_SETS, object: setOf() })] };

/** Claims pods for a set that the API has as `fresh`; what was patched, and the names of what is claimed. */
async function claim(pods: readonly Pod[], options: { known?: ReplicaSet; fresh?: ReplicaSet; deleting?: string }) {
  const { known = setOf(), deleting = "" } = options;
  const { fresh = known } = options;
  const patched: string[] = [];
  const hasOwner = ({ metadata }: Pod): boolean => metadata.ownerReferences !== undefined;
  const informer: Partial<Informer<Pod>> = {
    ownedBy: () => pods.filter(hasOwner),
    withoutController: () => pods.filter((pod) => !hasOwner(pod)),
    isDeleting: ({ metadata }) => metadata.name === deleting,
    wrote: () => undefined,
  };
  const api = {
    get: () => Promise.resolve(fresh),
    patch: (_resource: unknown, { name }: { readonly name: string }) => {
      patched.push(name);
      return Promise.resolve(pods.find(({ metadata }) => metadata.name === name));
    },
  };
  const claimed = await claimObjects(
    // reason: nothing else of them is called
    { api: api as unknown as KubeApi, resource: PODS, informer: informer as Informer<Pod> },
    {
      owner: { resource: REPLICA_SETS, object: known },
      selector: known.spec?.selector,
      isMember: ({ metadata }) => metadata.name !== "stranger",
    },
    { signal },
  );
  return { claimed: claimed.map(({ metadata }) => metadata.name), patched };
}

const deletionTimestamp = "2026-01-01T00:00:00Z";

describe("an owner", () => {
  for (const { name, pods, options, want } of [
    {
      name: "adopts what its selector matches",
      pods: [podOf("x"), podOf("y", { labels: {} })],
      options: {},
      want: { claimed: ["x"], patched: ["x"] },
    },
    {
      name: "does not adopt what is being deleted, or is no member",
      pods: [podOf("x"), podOf("stranger")],
      options: { deleting: "x" },
      want: { claimed: [], patched: [] },
    },
    {
      name: "that is being deleted neither adopts nor releases",
      pods: [podOf("x"), podOf("mine", owned), podOf("other", { ...owned, labels: {} })],
      options: { known: setOf({ deletionTimestamp }) },
      want: { claimed: ["mine"], patched: [] },
    },
    {
      name: "that is being deleted unbeknown to the informer does not adopt",
      pods: [podOf("x")],
      options: { fresh: setOf({ deletionTimestamp }) },
      want: { claimed: [], patched: [] },
    },
    {
      name: "that was replaced unbeknown to the informer does not adopt",
      pods: [podOf("x")],
      options: { fresh: setOf({ uid: "another" }) },
      want: { claimed: [], patched: [] },
    },
    {
      name: "releases what its selector no longer matches",
      pods: [podOf("mine", owned), podOf("other", { ...owned, labels: {} })],
      options: {},
      want: { claimed: ["mine"], patched: ["other"] },
    },
  ]) {
    test(name, async () => assert.deepEqual(await claim(pods, options), want));
  }
});
