import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Device } from "../adapters/devices/generated/deviceplugin.ts";
import { listedDevices } from "./listed-devices.ts";

const device = (ID: string, health = "Healthy", nodes: readonly number[] = []) =>
  Device.fromPartial({ ID, health, topology: { nodes: nodes.map((node) => ({ ID: node })) } });

describe("a plugin's list of devices", () => {
  test("is read with health and NUMA nodes", () => {
    const { devices, ignored } = listedDevices([device("a", "Healthy", [1, 0, 1]), device("b", "Unhealthy")]);
    assert.deepEqual(devices, [
      { id: "a", isHealthy: true, nodes: [0, 1] },
      { id: "b", isHealthy: false, nodes: [] },
    ]);
    assert.equal(ignored, 0);
  });

  test("of a hostile plugin loses what cannot be used", () => {
    const twice = [device("a", "Healthy"), device("a", "Unhealthy")];
    const { devices, ignored } = listedDevices([
      ...twice,
      device(""),
      device("x".repeat(2000)),
      device("n", "", [-1, 64]),
    ]);
    assert.deepEqual(devices, [
      { id: "a", isHealthy: false, nodes: [] },
      { id: "n", isHealthy: false, nodes: [] },
    ]);
    assert.equal(ignored, 3);
    const many = Array.from({ length: 100_010 }, (_, at) => device(`d${at}`));
    assert.equal(listedDevices(many).ignored, 10);
  });

  test("has nodes 0 to 63 in ascending order, each once", () => {
    const { devices } = listedDevices([
      device("a", "Healthy", [63, 0, 32, 31, 64, 63]),
      device("b", "Healthy", [31, 0]),
    ]);
    assert.deepEqual(
      devices.map(({ nodes }) => nodes),
      [
        [0, 31, 32, 63],
        [0, 31],
      ],
    );
  });

  test("of devices on the same nodes has their list once", () => {
    const { devices } = listedDevices([device("a", "Healthy", [1, 0]), device("b", "Healthy", [0, 1, 1])]);
    assert.equal(devices[0]?.nodes, devices[1]?.nodes);
  });
});
