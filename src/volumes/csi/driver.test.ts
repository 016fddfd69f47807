import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { CsiCapabilities, CsiNodeInfo } from "../../adapters/plugins/csi-client.ts";
import { silent } from "../../lib/log.ts";
import { CsiDrivers, type CsiNodeService, type CsiPlugin } from "./driver.ts";
import { VolumeCalls } from "./volume-calls.ts";

const { signal } = new AbortController();
const NONE: CsiCapabilities = {
  stages: false,
  mountsWithGroup: false,
  countsWriters: false,
  expands: false,
  hasStats: false,
  hasCondition: false,
};

function plugin(versions: readonly string[], socket = "/reg/a.sock"): CsiPlugin {
  return { name: "disk.example.com", endpoint: `${socket}.csi`, versions, socket };
}

class Site {
  readonly calls: string[] = [];
  info: CsiNodeInfo = { nodeId: "n-1", maxVolumes: 8, topology: { zone: "a" } };
  refusal: Error | undefined;
  readonly drivers = new CsiDrivers({
    log: silent,
    calls: new VolumeCalls(signal),
    connect: ({ endpoint }) => this.service(endpoint),
    publish: {
      install: ({ name, nodeId }) => {
        this.calls.push(`install ${name} ${nodeId}`);
        return this.refusal === undefined ? Promise.resolve() : Promise.reject(this.refusal);
      },
      update: () => Promise.resolve(),
      uninstall: (name) => void this.calls.push(`uninstall ${name}`),
    },
  });

  private service(endpoint: string): CsiNodeService {
    const unused = (): Promise<never> => Promise.reject(new Error("not called in this test"));
    return {
      info: () => Promise.resolve(this.info),
      capabilities: () => {
        this.calls.push("capabilities");
        return Promise.resolve(NONE);
      },
      stage: unused,
      unstage: unused,
      publish: unused,
      unpublish: unused,
      expand: unused,
      stats: unused,
      close: () => void this.calls.push(`close ${endpoint}`),
    };
  }
}

describe("a CSI driver", () => {
  test("is known by its name once it is registered and on the node's objects, and no longer after", async () => {
    const site = new Site();
    const { drivers } = site;
    assert.throws(
      () => drivers.get("disk.example.com"),
      /^Error: driver name disk\.example\.com not found in the list of registered CSI drivers$/,
    );
    let registered = 0;
    drivers.onChange(() => registered++, { signal });
    await drivers.register(plugin(["1.5.0"]), { signal });
    assert.equal(registered, 1);
    const driver = drivers.get("disk.example.com");
    await driver.capabilities({ signal });
    await driver.capabilities({ signal });
    drivers.deregister(plugin(["1.5.0"]));
    assert.deepEqual(site.calls, [
      "install disk.example.com n-1",
      "capabilities",
      "close /reg/a.sock.csi",
      "uninstall disk.example.com",
    ]);
    assert.deepEqual(drivers.names, []);
  });

  test("that the API server does not take, or that has no node id, is not registered", async () => {
    const site = new Site();
    site.refusal = new Error("forbidden");
    await assert.rejects(site.drivers.register(plugin(["1.0.0"]), { signal }), /forbidden/);
    site.refusal = undefined;
    site.info = { ...site.info, nodeId: "" };
    await assert.rejects(site.drivers.register(plugin(["1.0.0"]), { signal }), /NodeGetInfo returned no node id/);
    assert.deepEqual(site.drivers.names, []);
    assert.equal(site.calls.filter((call) => call.startsWith("close")).length, 2);
  });

  test("of a newer version takes over; the end of the old instance does not end it", async () => {
    const { drivers, calls } = new Site();
    await drivers.register(plugin(["1.2.0"], "/old"), { signal });
    drivers.validate(plugin(["1.3.0"], "/new"));
    await drivers.register(plugin(["1.3.0"], "/new"), { signal });
    drivers.deregister(plugin(["1.2.0"], "/old"));
    assert.deepEqual(drivers.names, ["disk.example.com"]);
    assert.ok(!calls.includes("uninstall disk.example.com"));
  });

  const refused: [string, readonly string[], RegExp | undefined][] = [
    ["has no version", [], /empty list for supported versions/],
    ["has only version 0 or 2", ["0.3.0", "2.0.0"], /none of the versions specified \["0.3.0" "2.0.0"\] are supported/],
    ["has nonsense", ["latest"], /none of the versions/],
    ["has a version that is usable", ["0.3", "v1.0.0"], undefined],
    ["is as old as another instance", ["1.2.0"], /already registered with version 1\.2\.0/],
  ];
  for (const [name, versions, want] of refused) {
    test(`that ${name} is ${want === undefined ? "taken" : "refused"}`, async () => {
      const { drivers } = new Site();
      if (name.startsWith("is as old")) await drivers.register(plugin(["1.2.0"], "/other"), { signal });
      const validate = (): void => drivers.validate(plugin(versions));
      if (want === undefined) validate();
      else assert.throws(validate, want);
    });
  }
});
