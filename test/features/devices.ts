/** Device plugins on the real wire and a real runtime: what containers get of them, and what survives which death. */
import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import * as wire from "../../src/adapters/devices/generated/podresources.ts";
import { GrpcChannel, method } from "../../src/adapters/grpc/channel.ts";
import type { TopologyReport } from "../../src/model/topology-report.ts";
import { importImage, testerFiles } from "../integration/support/images.ts";
import { FOREVER, manifest, shell } from "../integration/support/manifests.ts";
import { Program } from "../integration/support/program.ts";
import { type Agent, ids, requireMachine, Site } from "../integration/support/site.ts";
import { until } from "../integration/support/until.ts";
import type { PluginScript } from "../support/device-plugin.ts";

requireMachine();

const PLUGIN = join(import.meta.dirname, "../support/device-plugin-process.ts");
const RESOURCE = "example.com/card";
const IMAGE = "localhost/kubelet-ts-test/devices:1";
const FULL = /requested number of devices unavailable for example.com\/card. Requested: 1, Available: 0/;
const LOST = /no healthy devices present; cannot allocate unhealthy devices example.com\/card/;
const { signal } = new AbortController();
const site = new Site();
const root = join(site.state, "kubelet");
const directory = join(root, "device-plugins");

const script: PluginScript = {
  resource: RESOURCE,
  devices: [{ id: "one", nodes: [0] }, { id: "two" }],
  answer: {
    envs: { "CARD_{id}": "yes" },
    devices: [{ containerPath: "/dev/card-{id}", hostPath: "/dev/zero", permissions: "r" }],
    mounts: [{ containerPath: "/driver-{id}", hostPath: join(site.dir, "driver"), readOnly: true }],
    annotations: { "example.com/card-{id}": "given" },
  },
};

const list = method("/v1.PodResourcesLister/List", wire.ListPodResourcesRequest, wire.ListPodResourcesResponse);

/** The devices that each pod has, by the pod resources API. */
async function held(): Promise<Record<string, string[]>> {
  const channel = new GrpcChannel(join(root, "pod-resources/kubelet.sock"), undefined, { hasOwnConnection: true });
  try {
    const { podResources } = await channel.unary(list, {}, { signal, timeoutMs: 5000 });
    const devicesOf = ({ containers }: wire.PodResources): string[] =>
      containers.flatMap(({ devices }) => devices.flatMap(({ deviceIds }) => deviceIds));
    return Object.fromEntries(podResources.map((pod) => [pod.name.replace("-here", ""), devicesOf(pod)]));
  } finally {
    channel.close();
  }
}

/** True if this agent, and no earlier one, has written the words. */
function logged(words: string): boolean {
  const text = readFileSync(join(site.state, "kubelet.log"), "utf8");
  return text.slice(text.lastIndexOf('server="device plugins"')).includes(words);
}

function plugin(of: Partial<PluginScript> = {}): Program {
  const command = [process.execPath, "--import", "tsx", PLUGIN, directory, JSON.stringify({ ...script, ...of })];
  return new Program(command, { stdio: ["pipe", "pipe", "pipe"] });
}

/** A pod that tells what it has of devices. */
function user(name: string, count = "1", more = {}): ReturnType<typeof manifest> {
  const tell = "ls -l /dev/card-* ; env | grep CARD_ ; cat /driver-*/version";
  const resources = { limits: { [RESOURCE]: count }, requests: { [RESOURCE]: count } };
  return manifest(name, {
    containers: [shell("main", `${tell}; head -c 4 /dev/card-*; ${FOREVER}`, { image: IMAGE, resources, ...more })],
  });
}

describe("device plugins", () => {
  let agent: Agent;
  let cards: Program;

  before(async () => {
    mkdirSync(join(site.dir, "driver"));
    writeFileSync(join(site.dir, "driver/version"), "driver 7\n");
    agent = await site.up();
    await importImage(site, { name: IMAGE, files: testerFiles() });
    cards = plugin();
    await cards.says("registered");
  });
  after(async () => {
    await cards.end("SIGKILL");
    await site.close();
  });

  it("a container gets device nodes, variables and mounts of its devices", async () => {
    await until("the devices are listed", () => logged("Updated devices"));
    site.write(user("first"));
    await site.running("first");
    const [id = ""] = (await held())["first"] ?? [];
    const text = await until("the container's words", async () => {
      const words = await site.logs("first");
      return words.includes("driver 7") ? words : undefined;
    });
    assert.match(text, new RegExp(`c.* /dev/card-${id}`));
    assert.match(text, new RegExp(`CARD_${id}=yes`));
  });

  it("each device has one owner, and a pod too many is rejected", async () => {
    site.write(user("second"));
    await site.running("second");
    const { first = [], second = [] } = await held();
    assert.deepEqual([...first, ...second].sort(), ["one", "two"]);
    site.write(user("third"));
    // A static pod is critical, but preempts nobody for a device.
    await site.event("UnexpectedAdmissionError", "third", FULL);
    site.remove("third");
    await site.gone("third");
    site.remove("second");
    await site.gone("second");
  });

  it("a plugin with the wrong version, name or socket is refused", async () => {
    const wrong: [Partial<PluginScript>, RegExp][] = [
      [{ version: "v2" }, /refused: .*requested API version "v2" is not supported by kubelet/],
      [{ resource: "kubernetes.io/card" }, /refused: .*the ResourceName "kubernetes.io\/card" is invalid/],
      [{ endpoint: "../../../../run/x.sock" }, /refused: .*is not a socket in the directory of device plugins/],
      [{ fails: { GetDevicePluginOptions: "broken" } }, /refused: .*failed to get device plugin options: broken/],
    ];
    const tried = wrong.map(([of], at) =>
      plugin({ socket: `wrong-${at}.sock`, resource: `example.com/wrong-${at}`, ...of }),
    );
    for (const [at, one] of tried.entries()) await one.says(wrong[at]?.[1] ?? /./);
    await Promise.all(tried.map((one) => one.end("SIGKILL")));
  });

  it("a killed agent comes back with the same containers and devices, before the plugin and after it", async () => {
    const before = await held();
    const running = ids(await site.running("first"));
    await cards.end("SIGKILL");
    await agent.end("SIGKILL");
    agent = await site.up();
    await site.running("first");
    assert.deepEqual(await held(), before);
    site.write(user("late"));
    await site.event("UnexpectedAdmissionError", "late", LOST);
    site.remove("late");
    cards = plugin();
    await cards.says("registered");
    await until("the devices are listed", () => logged("Updated devices"));
    assert.deepEqual(await held(), before);
    assert.deepEqual(ids(await site.running("first")), running);
  });

  it("a running plugin registers again with a new agent", async () => {
    await agent.end("SIGKILL");
    agent = await site.up();
    // Once more if it sees the new socket before the agent has set its mode.
    await until("it is registered twice", () => cards.stdout.split("registered").length >= 3, {
      seen: () => cards.stdout,
    });
    // A plugin is registered before it has listed its devices.
    await until("the devices are listed", () => logged("Updated devices"));
    site.write(user("again"));
    await site.running("again");
    site.remove("again");
    await site.gone("again");
  });

  it("a container that ends is started again with its device, without the plugin too", async () => {
    const before = await held();
    await cards.end("SIGKILL");
    await until("the plugin is lost", () => logged("Lost device plugin"));
    const pod = await site.running("first");
    await site.cri.stopContainer((ids(pod)["main"] ?? "").replace("containerd://", ""), 0, { signal });
    await site.pod("first", "runs again", (now) => now.containers[0]?.restarts === 1 && now.state === "Running");
    assert.deepEqual(await held(), before);
  });

  it("after a reboot a pod waits for its plugin, and starts with its device when it is back", async () => {
    const before = await held();
    await agent.end("SIGTERM");
    for (const { id } of await site.sandboxes()) await site.cri.stopSandbox(id, { signal });
    agent = await site.up();
    await site.pod("first", "waits for the plugin", ({ steps }) =>
      steps.some(({ detail }) => detail?.includes("for device plugin example.com/card to register again")),
    );
    cards = plugin();
    await site.running("first");
    assert.deepEqual(await held(), before);
    await cards.end("SIGKILL");
  });

  it("after a reboot without its plugin a pod is rejected, and has no device any more", async () => {
    await agent.end("SIGTERM");
    for (const { id } of await site.sandboxes()) {
      await site.cri.stopSandbox(id, { signal });
      await site.cri.removeSandbox(id, { signal });
    }
    agent = await site.up();
    await site.event("UnexpectedAdmissionError", "first", LOST);
    assert.deepEqual(await held(), {});
    const checkpoint = (): string => readFileSync(join(directory, "kubelet_internal_checkpoint"), "utf8");
    await until("nobody has a device on disk", () => checkpoint().includes('"PodDeviceEntries":[]'), {
      seen: checkpoint,
    });
  });

  it("an endless list does not keep the agent from its work", async () => {
    const flood = plugin({ resource: "example.com/flood", floods: true });
    await flood.says("registered");
    site.write(manifest("calm", { containers: [shell("main", FOREVER, { image: IMAGE })] }));
    await site.running("calm");
    await flood.end("SIGKILL");
  });

  it("a plugin that hangs in Allocate delays only pods that need it", async () => {
    const hung = plugin({ resource: "example.com/hung", hangs: ["Allocate"] });
    await hung.says("registered");
    await until("the devices are listed", () => logged('"Updated devices" resource="example.com/hung"'));
    const limits = { "example.com/hung": "1" };
    const stuck = shell("main", FOREVER, { image: IMAGE, resources: { limits, requests: limits } });
    site.write(manifest("stuck", { containers: [stuck] }));
    await site.pod("stuck", "waits for the plugin", ({ steps }) =>
      steps.some(({ detail }) => detail?.includes("for device plugin example.com/hung to answer Allocate")),
    );
    site.write(manifest("beside", { containers: [shell("main", FOREVER, { image: IMAGE })] }));
    await site.running("beside");
    site.remove("stuck");
    await site.gone("stuck");
    await hung.end("SIGKILL");
    // Removed while its plugin had not answered, it left its device to others.
    const quick = plugin({ resource: "example.com/hung", socket: "quick.sock" });
    await quick.says("registered");
    const both = { "example.com/hung": "2" };
    const next = shell("main", FOREVER, { image: IMAGE, resources: { limits: both, requests: both } });
    await until("the devices are healthy", async () => {
      const { devices } = await site.ask<TopologyReport>("/v1/topology");
      return devices.filter(({ resource, isHealthy }) => resource === "example.com/hung" && isHealthy).length === 2;
    });
    site.write(manifest("next", { containers: [next] }));
    await site.running("next");
    await quick.end("SIGKILL");
  });
});
