/**
 * A shutdown that systemd's own login manager announces. Only in the emulated machine, which it may shut down: the unit
 * that would do so does nothing there, after which the login manager announces that it is over.
 */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { FOREVER, manifest, shell } from "../integration/support/manifests.ts";
import { requireMachine, Site } from "../integration/support/site.ts";
import { until } from "../integration/support/until.ts";

requireMachine();

const CONFIG = {
  apiVersion: "kubelet.config.k8s.io/v1beta1",
  kind: "KubeletConfiguration",
  shutdownGracePeriod: "200s",
  shutdownGracePeriodCriticalPods: "100s",
};
const MANAGER = ["org.freedesktop.login1", "/org/freedesktop/login1", "org.freedesktop.login1.Manager"];
const DROP_IN = "/etc/systemd/logind.conf.d/99-kubelet.conf";
const POWEROFF = "/run/systemd/system/poweroff.target";
const MASK = "/etc/systemd/system/systemd-logind.service";
const why = process.env["KUBELET_TEST_VM"] !== "1" && "needs a machine that may be shut down";

const run = (file: string, ...args: string[]): string => execFileSync(file, args, { encoding: "utf8" });

describe("systemd's login manager", { skip: why }, () => {
  const site = new Site();
  const inhibitors = (): string => run("systemd-inhibit", "--list", "--no-legend", "--no-pager");

  before(async () => {
    rmSync(MASK, { force: true });
    writeFileSync(POWEROFF, "[Unit]\nDescription=A shutdown that does nothing\n");
    run("systemctl", "daemon-reload");
    run("systemctl", "start", "systemd-logind.service");
    const config = join(site.dir, "kubelet.json");
    writeFileSync(config, JSON.stringify(CONFIG));
    await site.up([`--config=${config}`]);
  });
  after(async () => {
    try {
      await site.close();
    } finally {
      rmSync(POWEROFF);
      run("systemctl", "daemon-reload");
      rmSync(DROP_IN, { force: true });
    }
  });

  it("waits for the agent as long as pods may take", async () => {
    await until("the agent delays shutdowns", () => /kubelet .*shutdown .*delay/.test(inhibitors()));
    assert.equal(run("busctl", "get-property", ...MANAGER, "InhibitDelayMaxUSec").trim(), "t 200000000");
  });

  it("announces a shutdown: pods are ended, and then it goes on", async () => {
    site.write(manifest("web", { containers: [shell("main", FOREVER)], terminationGracePeriodSeconds: 30 }));
    await site.running("web");
    run("busctl", "call", ...MANAGER, "PowerOff", "b", "false");
    const { state } = await site.pod("web", "has ended", ({ phase }) => phase === "Failed");
    assert.equal(state, "Terminated");
  });

  it("announces that it is over: pods are admitted, and the next one is delayed", async () => {
    // While the shutdown is prepared, the lock of before may still be there.
    const isOver = (): boolean =>
      run("busctl", "get-property", ...MANAGER, "PreparingForShutdown").trim() === "b false";
    const delays = (): boolean => isOver() && /kubelet .*shutdown .*delay/.test(inhibitors());
    await until("the agent delays shutdowns again", delays);
    site.write(manifest("next"));
    await site.running("next");
  });
});
