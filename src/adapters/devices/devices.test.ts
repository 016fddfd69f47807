import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, describe, test } from "node:test";
import { DevicePluginServer, type PluginScript } from "../../../test/support/device-plugin.ts";
import { GrpcChannel, method } from "../grpc/channel.ts";
import { type GrpcListener, TooManyCallsError } from "../grpc/server.ts";
import type { RegisterRequest } from "./generated/deviceplugin.ts";
import * as wire from "./generated/podresources.ts";
import { numaNodes } from "./numa-nodes.ts";
import { connectPlugin } from "./plugin-client.ts";
import { PluginDirectory } from "./plugin-directory.ts";
import { listenPodResources } from "./pod-resources-server.ts";
import { listenForPlugins } from "./registration-server.ts";

const dir = mkdtempSync(join(tmpdir(), "kts-devices-"));
const { signal } = new AbortController();
const closed: (() => void | Promise<void>)[] = [];
after(() => rmSync(dir, { recursive: true }));
afterEach(async () => {
  for (const close of closed.splice(0)) await close();
});

function listening(listener: GrpcListener): GrpcListener {
  closed.push(() => listener.close());
  return listener;
}

async function plugin(script: Partial<PluginScript> = {}): Promise<DevicePluginServer> {
  const made = new DevicePluginServer(dir, {
    resource: "example.com/x",
    devices: [{ id: "a", nodes: [1] }],
    ...script,
  });
  await made.serve();
  closed.push(() => made.stop());
  return made;
}

describe("the wire of device plugins", () => {
  test("a plugin registers, and hears why it is refused", async () => {
    const taken: RegisterRequest[] = [];
    const take = (request: RegisterRequest): Promise<void> => {
      taken.push(request);
      return request.version === "v2" ? Promise.reject(new Error("not this version")) : Promise.resolve();
    };
    listening(await listenForPlugins(new PluginDirectory(dir), take));
    await (await plugin()).register();
    assert.equal(taken[0]?.resourceName, "example.com/x");
    assert.equal(taken[0]?.endpoint, "example.com-x.sock");
    const other = await plugin({ version: "v2", socket: "two.sock" });
    await assert.rejects(other.register(), /not this version/);
  });

  test("calls carry what each side says", async () => {
    const answer = { envs: { ID: "{id}" }, cdiDevices: [{ name: "v/c={id}" }] };
    const server = await plugin({ answer, prefers: ["b"], preStartRequired: true });
    const client = connectPlugin(join(dir, server.socket));
    closed.push(() => client.close());
    const options = { signal, timeoutMs: 5000 };
    assert.equal((await client.options(options)).preStartRequired, true);
    assert.deepEqual(await client.prefer({ offered: ["a", "b"], included: ["a"], size: 2 }, options), ["b"]);
    assert.deepEqual(server.requests.get("GetPreferredAllocation"), {
      containerRequests: [{ availableDeviceIDs: ["a", "b"], mustIncludeDeviceIDs: ["a"], allocationSize: 2 }],
    });
    const given = await client.allocate(["a"], options);
    assert.deepEqual([given?.envs, given?.cdiDevices], [{ ID: "a" }, [{ name: "v/c=a" }]]);
    assert.deepEqual(server.requests.get("Allocate"), { containerRequests: [{ devicesIds: ["a"] }] });
    await client.preStart(["a"], options);
    assert.deepEqual(server.requests.get("PreStartContainer"), { devicesIds: ["a"] });
    const lists = client.listAndWatch({ signal })[Symbol.asyncIterator]();
    const first = await lists.next();
    assert.deepEqual(first.value?.read().devices, [{ ID: "a", health: "Healthy", topology: { nodes: [{ ID: 1n }] } }]);
    server.list([{ id: "a", healthy: false }]);
    assert.equal((await lists.next()).value?.read().devices[0]?.health, "Unhealthy");
    server.stop();
    await assert.rejects(async () => lists.next());
  });

  test("a plugin that does not agree to the start of a container is heard", async () => {
    const server = await plugin({ fails: { PreStartContainer: "the card is locked" }, socket: "locked.sock" });
    const client = connectPlugin(join(dir, server.socket));
    closed.push(() => client.close());
    await assert.rejects(client.preStart(["a"], { signal, timeoutMs: 5000 }), /the card is locked/);
  });

  test("a method that does not answer ends by its deadline", async () => {
    const server = await plugin({ hangs: ["Allocate"], socket: "hangs.sock" });
    const client = connectPlugin(join(dir, server.socket));
    closed.push(() => client.close());
    await assert.rejects(client.allocate(["a"], { signal, timeoutMs: 50 }), { code: "Timeout" });
  });

  test("a call that is not answered fails when the connection is aborted", async () => {
    const server = await plugin({ hangs: ["Allocate"], socket: "closed.sock" });
    const client = connectPlugin(join(dir, server.socket));
    await client.options({ signal, timeoutMs: 5000 });
    const outcome = assert.rejects(client.allocate(["a"], { signal, timeoutMs: 60_000 }), /Cancelled on client/);
    client.abort();
    await outcome;
  });

  test("a message of more than 4 MiB ends the call, as in Kubernetes", async () => {
    const answer = { envs: { A: "x".repeat(4 * 1024 * 1024) } };
    const client = connectPlugin(join(dir, (await plugin({ answer, socket: "huge.sock" })).socket));
    closed.push(() => client.close());
    await assert.rejects(client.allocate(["a"], { signal, timeoutMs: 10_000 }), { code: "ResourceExhausted" });
  });

  test("an answer of hundreds of thousands of fields is refused before they take memory", async () => {
    const answer = { mounts: Array.from({ length: 160_000 }, () => ({})) };
    const client = connectPlugin(join(dir, (await plugin({ answer, socket: "fields.sock" })).socket));
    closed.push(() => client.close());
    await assert.rejects(client.allocate(["a"], { signal, timeoutMs: 10_000 }), /more than 150000 fields/);
  });

  test("a list of a million NUMA nodes is refused, one of 100,000 devices on two nodes is not", async () => {
    const devices = [{ id: "a", nodes: Array.from({ length: 1_000_000 }, () => 1) }];
    const server = await plugin({ devices, socket: "nodes.sock" });
    const client = connectPlugin(join(dir, server.socket));
    closed.push(() => client.close());
    const lists = client.listAndWatch({ signal })[Symbol.asyncIterator]();
    const first = await lists.next();
    assert.throws(() => first.value?.read(), /ListAndWatch: the message has more than 1000000 fields/);
    server.list(Array.from({ length: 100_000 }, (_, at) => ({ id: `card-${at}`, nodes: [0, 1] })));
    assert.equal((await lists.next()).value?.read().devices.length, 100_000);
  });

  test("a checkpoint that would be too large to be read is not written, and the one before stays", async () => {
    const directory = new PluginDirectory(join(dir, "large"));
    await directory.writeCheckpoint("before");
    const large = "x".repeat(64 * 1024 * 1024);
    await directory.writeCheckpoint(large);
    assert.equal(directory.readCheckpoint()?.length, large.length);
    await directory.writeCheckpoint("before");
    await assert.rejects(directory.writeCheckpoint(`${large}x`), /device checkpoint has 67108865 bytes/);
    assert.equal(directory.readCheckpoint(), "before");
  });

  test("the directory is cleaned of sockets only, and its checkpoint is kept", async () => {
    const directory = new PluginDirectory(join(dir, "plugins"));
    assert.equal(directory.readCheckpoint(), undefined);
    await directory.writeCheckpoint("text");
    writeFileSync(join(directory.path, "file"), "");
    const stale = createServer().listen(join(directory.path, "old.sock"));
    await new Promise((resolve) => stale.once("listening", resolve));
    const listener = listening(await listenForPlugins(directory, () => Promise.resolve()));
    stale.close();
    assert.equal(existsSync(join(directory.path, "old.sock")), false);
    assert.equal(existsSync(join(directory.path, "file")), true);
    // Plugins that are made like Kubernetes' sample do not register where it is.
    assert.equal(existsSync(join(directory.path, "DEPRECATION")), false);
    assert.equal(directory.readCheckpoint(), "text");
    assert.equal(statSync(directory.path).mode & 0o777, 0o750);
    assert.equal(statSync(listener.address).mode & 0o777, 0o755);
    assert.match(directory.setAside(), /\.corrupt$/);
    assert.equal(directory.readCheckpoint(), undefined);
  });
});

describe("what a plugin puts into the directory", () => {
  const dir = mkdtempSync(join(tmpdir(), "kts-plugins-"));
  const directory = new PluginDirectory(dir);
  const checkpoint = join(dir, "kubelet_internal_checkpoint");
  after(() => rmSync(dir, { recursive: true }));

  test("leads to no other file", () => {
    const other = join(dir, "other");
    writeFileSync(other, "of somebody else");
    symlinkSync(other, checkpoint);
    assert.equal(directory.readCheckpoint(), "");
    directory.setAside();
    assert.equal(readFileSync(other, "utf8"), "of somebody else");
    assert.equal(directory.readCheckpoint(), undefined);
  });

  test("is no checkpoint unless it is a file, and keeps no agent from starting", async () => {
    for (const command of ["mkfifo", "mkdir"]) {
      // A child, which can be ended: an agent that waits for a pipe does so for ever.
      execFileSync(command, [checkpoint]);
      const script = `import(${JSON.stringify(import.meta.resolve("./plugin-directory.ts"))}).then((it) =>
        console.log(JSON.stringify(new it.PluginDirectory(${JSON.stringify(dir)}).readCheckpoint())))`;
      const args = ["--import", "tsx", "--eval", script];
      const text = execFileSync(process.execPath, args, { encoding: "utf8", timeout: 20_000, killSignal: "SIGKILL" });
      assert.equal(text.trim(), '""', command);
      directory.setAside();
      await directory.writeCheckpoint("{}");
      assert.equal(directory.readCheckpoint(), "{}");
      rmSync(checkpoint);
      rmSync(`${checkpoint}.corrupt`, { recursive: true });
    }
  });
});

test("NUMA nodes are read from the kernel's directory", () => {
  const nodes = join(dir, "node");
  for (const name of ["node0", "node10", "node2", "possible"]) mkdirSync(join(nodes, name), { recursive: true });
  assert.deepEqual(numaNodes(nodes), [0, 2, 10]);
  assert.deepEqual(numaNodes(join(dir, "missing")), [0]);
});

describe("the wire of the pod resources API", () => {
  test("v1 and v1alpha1 are served on one socket, and errors have their code", async () => {
    const path = join(dir, "pod-resources", "kubelet.sock");
    const pods = (name: string) => ({ podResources: [{ name, namespace: "default", containers: [] }] });
    listening(
      await listenPodResources(path, {
        list: () => pods("v1"),
        listAlpha: () => pods("alpha"),
        allocatable: () => {
          throw new TooManyCallsError();
        },
        get: ({ podName }) => {
          throw new Error(`pod ${podName} in namespace default not found`);
        },
      }),
    );
    const channel = new GrpcChannel(path, undefined, { hasOwnConnection: true });
    closed.push(() => channel.close());
    const options = { signal, timeoutMs: 5000 };
    const list = (service: string) =>
      method(`/${service}.PodResourcesLister/List`, wire.ListPodResourcesRequest, wire.ListPodResourcesResponse);
    assert.equal((await channel.unary(list("v1"), {}, options)).podResources[0]?.name, "v1");
    assert.equal((await channel.unary(list("v1alpha1"), {}, options)).podResources[0]?.name, "alpha");
    const get = method("/v1.PodResourcesLister/Get", wire.GetPodResourcesRequest, wire.GetPodResourcesResponse);
    await assert.rejects(channel.unary(get, { podName: "x" }, options), /pod x in namespace default not found/);
    const allocatable = method(
      "/v1.PodResourcesLister/GetAllocatableResources",
      wire.AllocatableResourcesRequest,
      wire.AllocatableResourcesResponse,
    );
    await assert.rejects(channel.unary(allocatable, {}, options), { code: "ResourceExhausted" });
  });
});
