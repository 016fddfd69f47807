import { existsSync, readdirSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { listProcesses, ownProcesses, sandboxOf } from "../../../src/adapters/embedded/processes.ts";
import type { Pod } from "../../../src/model/generated/types.ts";
import { isRunning, type Site, shortName } from "./site.ts";

/** Returns everything that is not as the manifests (by name) want it; empty once the agent has converged. */
export async function deviations(site: Site, wanted: ReadonlyMap<string, Pod>): Promise<string[]> {
  const found: string[] = [];
  const pods = await site.list();
  const names = pods.map(({ name }) => shortName(name)).sort();
  const expected = [...wanted.keys()].sort();
  if (names.join() !== expected.join()) found.push(`pods: ${names.join()} instead of ${expected.join()}`);
  const uids = new Set(pods.map(({ uid }) => uid));
  const [sandboxes, containers] = [await site.sandboxes(), await site.containers()];
  for (const { metadata } of sandboxes) if (!uids.has(metadata.uid)) found.push(`sandbox of ${metadata.name} is left`);
  const sandboxIds = new Set(sandboxes.map(({ id }) => id));
  for (const { sandboxId, name } of containers) if (!sandboxIds.has(sandboxId)) found.push(`container ${name} is left`);
  for (const { name, uid } of pods) {
    const pod = await site.find(uid);
    if (pod === undefined || name.startsWith("crashing-")) continue;
    if (!isRunning(pod)) found.push(`${name} is ${pod.state}`);
    const own = sandboxes.filter(({ metadata }) => metadata.uid === uid);
    const ready = own.filter(({ state }) => state === "ready").length;
    if (ready !== 1) found.push(`${name} has ${ready} sandboxes`);
    for (const one of pod.containers.filter(({ kind }) => kind === "regular")) {
      const same = containers.filter(({ sandboxId, name: called, state }) => {
        return called === one.name && state === "running" && own.some(({ id }) => id === sandboxId);
      });
      if (same.length !== 1) found.push(`${name} has ${same.length} running ${one.name}`);
    }
  }
  return found;
}

/** Returns what the kernel has that belongs to no pod (shims, cables, addresses), if `onHost` pods use the host's network. */
export async function leftovers(site: Site, onHost: number): Promise<string[]> {
  const sandboxes = (await site.sandboxes()).filter(({ state }) => state === "ready");
  const onBridge = sandboxes.length - onHost;
  const { shims } = ownProcesses(listProcesses(), site.layout);
  const cables = readdirSync(`/sys/class/net/${site.layout.bridge}/brif`);
  const addresses = readdirSync(join(site.layout.ipamDir, site.layout.name)).filter((name) => /^[\d.]+$/.test(name));
  const counts: [string, number, number][] = [
    ["shims", shims.length, sandboxes.length],
    ["cables", cables.length, onBridge],
    ["addresses", addresses.length, onBridge],
  ];
  return counts.filter(([, is, should]) => is !== should).map(([what, is, should]) => `${is} ${what}, not ${should}`);
}

/** Describes the shims that belong to no sandbox. */
export async function strayShims(site: Site): Promise<string[]> {
  const all = listProcesses();
  const ids = new Set((await site.sandboxes()).map(({ id }) => id));
  return ownProcesses(all, site.layout)
    .shims.filter((shim) => !ids.has(sandboxOf(shim) ?? ""))
    .map((shim) => {
      const children = all.filter(({ parent }) => parent === shim.pid).map(({ argv }) => argv.join(" "));
      const directory = existsSync(`/proc/${shim.pid}`) ? readlinkSync(`/proc/${shim.pid}/cwd`) : "ended";
      return `shim ${shim.pid} of ${sandboxOf(shim)} in ${directory} with children [${children.join("; ")}]`;
    });
}
