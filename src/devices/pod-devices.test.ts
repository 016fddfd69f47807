import assert from "node:assert/strict";
import { test } from "node:test";
import { ContainerAllocateResponse } from "../adapters/devices/generated/deviceplugin.ts";
import type { ContainerDevices } from "./device.ts";
import { PodDevices } from "./pod-devices.ts";

const GPU = "example.com/gpu";
const devices = (...ids: readonly string[]): ContainerDevices => ({
  byNode: new Map([[0, ids]]),
  answer: ContainerAllocateResponse.fromPartial({}),
});
const allocated = (pods: PodDevices): string[] => [...pods.allocated(GPU).keys()].sort();

test("a container that gets other devices gives its former ones back", () => {
  const pods = new PodDevices();
  const key = { uid: "u", container: "c", resource: GPU };
  pods.set(key, devices("a", "b"));
  pods.set(key, devices("b", "d"));
  assert.deepEqual(allocated(pods), ["b", "d"]);
  assert.equal(pods.delete("u"), true);
  assert.deepEqual([allocated(pods), pods.resources(), pods.uids()], [[], [], []]);
});

test("the version changes with each change of what pods have, and only then", () => {
  const pods = new PodDevices();
  const versions = [pods.version];
  const changes = [
    () => pods.set({ uid: "u", container: "c", resource: GPU }, devices("a")),
    () => pods.delete("other"),
    () => pods.delete("u"),
  ];
  for (const change of changes) {
    change();
    versions.push(pods.version);
  }
  assert.deepEqual(versions, [0, 1, 1, 2]);
});

test("a device that an init container shares with a container is free when both are gone", () => {
  const pods = new PodDevices();
  pods.set({ uid: "u", container: "init", resource: GPU }, devices("a", "b"));
  pods.set({ uid: "u", container: "main", resource: GPU }, devices("a"));
  pods.set({ uid: "u", container: "init", resource: GPU }, devices());
  assert.deepEqual(allocated(pods), ["a"]);
  pods.delete("u");
  assert.deepEqual(allocated(pods), []);
});

test("a pod without devices is not deleted twice, and others keep theirs", () => {
  const pods = new PodDevices();
  pods.set({ uid: "u", container: "c", resource: GPU }, devices("a"));
  pods.set({ uid: "v", container: "c", resource: GPU }, devices("b"));
  assert.deepEqual([pods.delete("u"), pods.delete("u")], [true, false]);
  assert.deepEqual(pods.podsWith(GPU, new Set(["a", "b"])), ["v"]);
  assert.deepEqual(allocated(pods), ["b"]);
});

test("a change of one of several devices concerns the pods that have it, and no others", () => {
  const pods = new PodDevices();
  pods.set({ uid: "u", container: "c", resource: GPU }, devices("a", "b"));
  pods.set({ uid: "v", container: "c", resource: GPU }, devices("d"));
  assert.deepEqual(pods.podsWith(GPU, new Set(["b"])), ["u"]);
  assert.deepEqual(pods.podsWith("example.com/nic", new Set(["b"])), []);
});
