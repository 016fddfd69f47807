/** The driver that the tests mount with keeps to CSI: csi-sanity, the conformance test of drivers, has the word. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { LoopCsiProcess, whyNoLoopCsi } from "../support/loop-csi/process.ts";

const SANITY = join(
  process.env["CSI_SANITY_BIN_DIR"] || join(homedir(), ".cache/kubelet-ts/csi-sanity-5.6.0"),
  "csi-sanity",
);
const reason = existsSync(SANITY) ? whyNoLoopCsi() : `no ${SANITY} (node scripts/build-csi-sanity.mjs)`;
if (reason !== undefined) {
  process.stdout.write(`${reason}\n`);
  process.exit(77);
}

const MIB = 2 ** 20;

describe("csi-sanity", () => {
  const dir = mkdtempSync(join(tmpdir(), "cs-"));
  const driver = new LoopCsiProcess("loop.example.com", { dir });
  before(() => driver.start());
  after(async () => {
    await driver.kill();
    rmSync(dir, { recursive: true });
  });

  for (const [type, fsType] of [
    ["mount", "ext4"],
    ["block", ""],
  ] as const) {
    test(`${type} volumes`, () => {
      const parameters = join(dir, "parameters.yaml");
      writeFileSync(parameters, fsType === "" ? "{}" : `fsType: ${fsType}\n`);
      const flags = [
        `--csi.endpoint=unix://${driver.options.socket}`,
        `--csi.mountdir=${join(dir, `m-${type}`)}`,
        `--csi.stagingdir=${join(dir, `s-${type}`)}`,
        `--csi.testvolumeaccesstype=${type}`,
        `--csi.testvolumeparameters=${parameters}`,
        ...[`--csi.testvolumesize=${32 * MIB}`, `--csi.testvolumeexpandsize=${64 * MIB}`],
        "--ginkgo.no-color",
      ];
      const { status, stdout, stderr } = spawnSync(SANITY, flags, { encoding: "utf8", timeout: 300_000 });
      assert.equal(status, 0, `${stdout}${stderr}`.slice(-6000));
      const [, ran = "0"] = /Ran (\d+) of \d+ Specs/.exec(stdout) ?? [];
      assert.ok(Number(ran) > 25, `${ran} specs ran`);
    });
  }
});
