import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ClaimedScene } from "../../../../test/support/claimed-volume.ts";
import { type DoomedMachine, killedAfterEveryCall } from "../../../../test/support/doomed-machine.ts";
import { FakeIscsi } from "../../../../test/support/fake-iscsi.ts";
import { secret } from "../../../../test/support/objects.ts";
import { VolumeMachine } from "../../../../test/support/volume-machine.ts";
import { silent } from "../../../lib/log.ts";
import type { ISCSIPersistentVolumeSource, PersistentVolumeSpec } from "../../../model/generated/types.ts";
import { VOLUME_KINDS } from "../../kinds/index.ts";
import { blockDiskKind, diskKind } from "../disk-kind.ts";
import { iscsiDriver } from "./driver.ts";

const IQN = "iqn.2026-01.com.example:disks";
const PORTAL = "10.0.0.9:3260";
const PLUGIN = "/root/plugins/kubernetes.io/iscsi";
const STAGED = `${PLUGIN}/iface-default/${PORTAL}-${IQN}-lun-1`;
const mountOf = (name: string): string => `/root/pods/uid-of-${name}/volumes/kubernetes.io~iscsi/pv-1`;
const source: ISCSIPersistentVolumeSource = { targetPortal: "10.0.0.9", iqn: IQN, lun: 1 };

class IscsiScene extends ClaimedScene {
  readonly network: FakeIscsi;

  constructor(
    fields: Partial<ISCSIPersistentVolumeSource> = {},
    { machine = new VolumeMachine(), ...spec }: PersistentVolumeSpec & { machine?: VolumeMachine } = {},
  ) {
    const driver = iscsiDriver({ log: silent });
    const kinds = [...VOLUME_KINDS, diskKind(driver), blockDiskKind(driver)];
    super({ iscsi: { ...source, ...fields }, ...spec }, { kinds, machine });
    this.network = new FakeIscsi(this.machine);
    this.network.targets.push({ portal: PORTAL, iqn: IQN, luns: [1, 2] });
  }

  assertGone(message = ""): void {
    assert.deepEqual(this.left("pv-1", "-lun-"), [], message);
    assert.deepEqual([this.network.sessions, [...this.network.nodes.keys()]], [[], []], message);
  }
}

describe("an iSCSI disk", () => {
  test("is logged in to, scanned for alone, mounted once and bound: with the commands of Kubernetes", async () => {
    const scene = new IscsiScene({ fsType: "xfs" }, { mountOptions: ["noatime"] });
    await scene.prepare(scene.user("a"));
    const node = `-m node -p ${PORTAL} -T ${IQN}`;
    const discovery = `-m discoverydb -t sendtargets -p ${PORTAL} -I default`;
    assert.deepEqual(scene.network.calls, [
      "-m iface -I default -o show",
      `${discovery} -o new`,
      `${discovery} --discover`,
      `${node} -I default -o update -n node.session.scan -v manual`,
      `${node} -I default --login`,
      `${node} -o update -n node.startup -v manual`,
    ]);
    assert.ok(scene.machine.done.includes("run tee -- /sys/class/scsi_host/host1/scan < 0 0 1"));
    const device = `/dev/disk/by-path/ip-${PORTAL}-iscsi-${IQN}-lun-1`;
    assert.deepEqual(
      [...scene.machine.mounts],
      [
        [STAGED, { type: "xfs, or made", source: device, options: ["noatime"] }],
        [mountOf("a"), { type: "bind", source: STAGED, options: ["noatime"] }],
      ],
    );
    assert.deepEqual(scene.volumes.source(scene.user("a"), "v"), {
      kind: "path",
      path: mountOf("a"),
      readonly: false,
      isRemote: true,
    });
  });

  test("is persisted as Kubernetes does, before anybody logs in, and without its secrets", async () => {
    const scene = new IscsiScene({ chapAuthSession: true, secretRef: { name: "chap" } });
    scene.objects.put(...secret("chap", { "node.session.auth.password": "hush" }));
    const { onRun } = scene.machine;
    let known = "";
    scene.machine.onRun = (command, input) => {
      if (command.includes("--discover")) known = scene.machine.files.get(`${STAGED}/iscsi.json`) ?? "";
      return onRun(command, input);
    };
    await scene.prepare(scene.user("a"));
    assert.deepEqual(JSON.parse(known), {
      VolName: "pv-1",
      Portals: [PORTAL],
      Iqn: IQN,
      Lun: "1",
      InitIface: "default",
      Iface: "default",
      InitiatorName: "",
      MetricsProvider: null,
    });
    for (const text of scene.machine.files.values()) assert.doesNotMatch(text, /hush/);
  });

  test("is shared by pods, and logged out of by the last of them", async () => {
    const scene = new IscsiScene();
    await Promise.all([scene.prepare(scene.user("a")), scene.prepare(scene.user("b"))]);
    assert.equal(scene.network.calls.filter((call) => call.endsWith("--login")).length, 1);
    scene.loseApiServer();
    await scene.teardown("a");
    assert.equal(scene.network.sessions.length, 1);
    scene.volumes = scene.newAgent();
    await scene.teardown("b");
    assert.ok(scene.network.calls.includes(`-m node -p ${PORTAL} -T ${IQN} -I default --logout`));
    scene.assertGone();
  });

  test("of a target that another volume uses keeps the session, and takes only its own device away", async () => {
    const scene = new IscsiScene();
    await scene.prepare(scene.user("a"));
    await scene.machine.makeDir(`${PLUGIN}/iface-default/${PORTAL}-${IQN}-lun-2`, 0o750);
    await scene.teardown("a");
    assert.deepEqual([scene.network.sessions.length, scene.network.all().length], [1, 0]);
  });

  test("on a session with a disk that is not ours keeps the session", async () => {
    const scene = new IscsiScene();
    await scene.prepare(scene.user("a"));
    await scene.machine.run(["tee", "--", "/sys/class/scsi_host/host1/scan"], { input: "0 0 2" });
    await scene.teardown("a");
    assert.deepEqual(
      scene.network.all().map(({ lun }) => lun),
      [2],
    );
  });

  test("is logged out of although another target at its portal has other disks", async () => {
    const scene = new IscsiScene();
    const other = `${IQN}-of-others`;
    scene.network.targets.push({ portal: PORTAL, iqn: other, luns: [2] });
    await scene.prepare(scene.user("a"));
    const run = (...command: [string, ...string[]]) => scene.machine.run(command, {});
    await run("iscsiadm", "-m", "node", "-p", PORTAL, "-T", other, "-I", "default", "--login");
    await scene.machine.run(["tee", "--", "/sys/class/scsi_host/host2/scan"], { input: "0 0 2" });
    assert.deepEqual(
      scene.network.all().map(({ session, lun }) => `${session.iqn} ${lun}`),
      [`${IQN} 1`, `${other} 2`],
    );
    await scene.teardown("a");
    assert.deepEqual(
      scene.network.all().map(({ session, lun }) => `${session.iqn} ${lun}`),
      [`${other} 2`],
    );
    assert.deepEqual(
      scene.network.sessions.map(({ iqn }) => iqn),
      [other],
    );
  });

  test("takes no disk of another target away that has the same number there", async () => {
    const scene = new IscsiScene();
    const other = `${IQN}-of-others`;
    scene.network.targets.push({ portal: PORTAL, iqn: other, luns: [1] });
    await scene.prepare(scene.user("a"));
    await scene.machine.run(["iscsiadm", "-m", "node", "-p", PORTAL, "-T", other, "-I", "default", "--login"], {});
    await scene.machine.run(["tee", "--", "/sys/class/scsi_host/host2/scan"], { input: "0 0 1" });
    await scene.teardown("a");
    assert.deepEqual(
      scene.network.all().map(({ session, lun }) => `${session.iqn} ${lun}`),
      [`${other} 1`],
    );
  });

  test("that is there already is not asked for again, so that a target that is gone keeps no container", async () => {
    const scene = new IscsiScene();
    await scene.prepare(scene.user("a"));
    scene.volumes = scene.newAgent();
    scene.machine.onRun = () => Promise.reject(new Error("hangs"));
    await scene.prepare(scene.user("a"));
  });

  test("read-only is mounted so, and never formatted", async () => {
    const made = new ClaimedScene(
      { iscsi: source },
      { readOnly: true, kinds: [...VOLUME_KINDS, diskKind(iscsiDriver({ log: silent }))] },
    );
    new FakeIscsi(made.machine).targets.push({ portal: PORTAL, iqn: IQN, luns: [1] });
    await made.prepare(made.user("a", { securityContext: { fsGroup: 7 } }));
    assert.deepEqual(
      [...made.machine.mounts.values()].map(({ type, options }) => [type, options]),
      [
        ["found", ["ro"]],
        ["bind", ["ro"]],
      ],
    );
    assert.equal(made.machine.groups.size, 0);
  });

  test("gets the group of the pod", async () => {
    const scene = new IscsiScene();
    await scene.prepare(scene.user("a", { securityContext: { fsGroup: 7 } }));
    assert.equal(scene.machine.groups.get(mountOf("a"))?.gid, 7);
    assert.ok(scene.machine.done.includes(`group ${mountOf("a")} by a child`), "the disk may hang");
  });

  test("with an initiator name gets an interface of its own, which goes with it", async () => {
    const scene = new IscsiScene({ initiatorName: "iqn.2026-01.com.example:node" });
    await scene.prepare(scene.user("a"));
    const name = `${PORTAL}:pv-1`;
    assert.deepEqual(
      [...(scene.network.interfaces.get(name) ?? [])],
      [
        ["iface.initiatorname", "iqn.2026-01.com.example:node"],
        ["iface.mtu", "0"],
        ["iface.transport_name", "tcp"],
      ],
    );
    assert.ok(scene.machine.mounts.has(`${PLUGIN}/iface-${name}/${PORTAL}-${IQN}-lun-1`));
    await scene.teardown("a");
    assert.equal(scene.network.interfaces.size, 0);
    scene.assertGone();
  });

  test("with an initiator name that cannot be reached leaves no interface behind", async () => {
    const scene = new IscsiScene({ initiatorName: "iqn.2026-01.com.example:node" });
    scene.network.unreachable.add(PORTAL);
    await scene.refusal(scene.user("a"));
    assert.equal(scene.network.interfaces.size, 0);
  });

  test("with several portals uses all of them, and the multipath device over them", async () => {
    const other = "10.0.0.10:3260";
    const scene = new IscsiScene({ portals: ["10.0.0.10"] });
    scene.network.targets.push({ portal: other, iqn: IQN, luns: [1] });
    scene.machine.modes.set("/sys/block/dm-3/slaves/sdc", 0o777);
    await scene.prepare(scene.user("a"));
    assert.equal(scene.network.sessions.length, 2);
    assert.equal(scene.machine.mounts.get(STAGED)?.source, "/dev/dm-3");
    scene.machine.done.length = 0;
    await scene.teardown("a");
    assert.deepEqual(
      scene.machine.done.filter((line) => line.startsWith("run") && !line.includes("iscsiadm")),
      [
        "run multipath -f /dev/dm-3",
        "run tee -- /sys/block/sdb/device/delete < 1",
        "run tee -- /sys/block/sdc/device/delete < 1",
      ],
    );
    assert.equal(scene.network.sessions.length, 0);
  });

  test("with several portals waits for the multipath device over them", async () => {
    const scene = new IscsiScene({ portals: ["10.0.0.10"] });
    scene.network.targets.push({ portal: "10.0.0.10:3260", iqn: IQN, luns: [1] });
    const prepared = scene.prepare(scene.user("a"));
    await scene.clock.advance(5000);
    assert.equal(scene.machine.mounts.has(STAGED), false);
    scene.machine.modes.set("/sys/block/dm-3/slaves/sdc", 0o777);
    await scene.clock.advance(1000);
    await prepared;
    assert.equal(scene.machine.mounts.get(STAGED)?.source, "/dev/dm-3");
  });

  test("that somebody has mounted elsewhere is not unmounted until that is gone", async () => {
    const scene = new IscsiScene();
    await scene.prepare(scene.user("a"));
    scene.machine.mounts.set("/srv/copy", { type: "bind", source: STAGED });
    await scene.teardown("a");
    assert.equal(scene.machine.mounts.has(STAGED), true);
    scene.machine.mounts.delete("/srv/copy");
    await scene.clock.advance(1000);
    scene.assertGone();
  });

  test("with a portal that is gone is mounted over the others", async () => {
    const scene = new IscsiScene({ portals: ["10.0.0.10", "10.0.0.11"] });
    for (const portal of ["10.0.0.10:3260", "10.0.0.11:3260"])
      scene.network.targets.push({ portal, iqn: IQN, luns: [1] });
    scene.network.unreachable.add("10.0.0.10:3260");
    const prepared = scene.prepare(scene.user("a"));
    await scene.clock.advance(10_000);
    await prepared;
    assert.equal(scene.network.sessions.length, 2);
    assert.equal(scene.network.calls.filter((call) => /10\.0\.0\.10.*--discover/.test(call)).length, 2);
  });

  const chap: readonly (readonly [string, Partial<ISCSIPersistentVolumeSource>, RegExp | undefined])[] = [
    ["and names it", { chapAuthSession: true, secretRef: { name: "chap" } }, undefined],
    ["and names one that ends with a newline", { chapAuthSession: true, secretRef: { name: "line" } }, undefined],
    ["and does not authenticate itself", {}, /authorization failure/],
    [
      "and names a Secret that is missing",
      { chapAuthSession: true, secretRef: { name: "none" } },
      /couldn't get secret default\/none error: secret "none" not found/,
    ],
  ];
  for (const [name, fields, refusal] of chap) {
    test(`of a target with a password ${name}`, async () => {
      const scene = new IscsiScene(fields);
      scene.objects.put(
        ...secret("chap", { "node.session.auth.username": "me", "node.session.auth.password": "hush" }),
      );
      scene.objects.put(
        ...secret("line", { "node.session.auth.username": "me\n", "node.session.auth.password": "hush\n" }),
      );
      scene.network.targets.splice(0, 1, {
        portal: PORTAL,
        iqn: IQN,
        luns: [1],
        chap: {
          "node.session.auth.authmethod": "CHAP",
          "node.session.auth.username": "me",
          "node.session.auth.password": "hush",
        },
      });
      if (refusal === undefined) return scene.prepare(scene.user("a"));
      assert.match(await scene.refusal(scene.user("a")), refusal);
      return undefined;
    });
  }

  test("with a password of several lines, which would be settings of their own, is refused", async () => {
    const scene = new IscsiScene({ chapAuthSession: true, secretRef: { name: "chap" } });
    scene.objects.put(...secret("chap", { "node.session.auth.password": "hush\nnode.startup = automatic" }));
    const refusal = await scene.refusal(scene.user("a"));
    assert.match(refusal, /secret key "node\.session\.auth\.password" has a line break/);
    assert.doesNotMatch(refusal, /hush/);
  });

  test("whose discovery needs a password sets it first", async () => {
    const scene = new IscsiScene({ chapAuthDiscovery: true, secretRef: { name: "chap" } });
    scene.objects.put(...secret("chap", { "discovery.sendtargets.auth.password": "hush" }));
    await scene.prepare(scene.user("a"));
    assert.deepEqual(Object.fromEntries(scene.network.discoveries.get(PORTAL) ?? []), {
      "discovery.sendtargets.auth.authmethod": "CHAP",
      "discovery.sendtargets.auth.password": "hush",
    });
  });

  test("with many portals that are gone lets others of the same target in between", async () => {
    const portals = Array.from({ length: 9 }, (_, at) => `10.0.1.${at}`);
    const scene = new IscsiScene({ lun: 2, portals });
    let gone = 0;
    let release = (): void => undefined;
    const { onRun } = scene.machine;
    scene.machine.onRun = (command, input) => {
      const isGone = command.includes("--discover") && /10\.0\.1\./.test(command.join(" "));
      if (!isGone || ++gone > 1) return onRun(command, input);
      // The first of them does not answer for a while.
      return new Promise((resolve) => {
        release = () => resolve({ code: 8, stdout: "", stderr: "timed out" });
      });
    };
    const inline = { iscsi: { targetPortal: "10.0.0.9", iqn: IQN, lun: 1 } };
    const first = scene.prepare(scene.user("slow"));
    await scene.clock.advance(0);
    assert.equal(gone, 1);
    let tried: number | undefined;
    const second = scene.prepare(scene.user("quick", { volumes: [{ name: "v", ...inline }] })).then(() => {
      tried = gone;
    });
    await scene.clock.advance(0);
    release();
    for (let round = 0; round < 60; round++) await scene.clock.advance(1000);
    await Promise.all([first, second]);
    assert.ok(tried !== undefined && tried < portals.length, `${tried} portals were tried before it was its turn`);
  });

  test("that cannot be reached says so at the step of Kubernetes, and never with a password", async () => {
    const scene = new IscsiScene({ chapAuthSession: true, secretRef: { name: "chap" } });
    scene.objects.put(...secret("chap", { "node.session.auth.password": "hush" }));
    scene.network.unreachable.add(PORTAL);
    await scene.refusal(scene.user("a"));
    assert.deepEqual(scene.events, [
      `FailedMount: MountVolume.WaitForAttach failed for volume "pv-1" : failed to get any path for iscsi disk, last err seen:\niscsi: failed to sendtargets to portal ${PORTAL} output: iscsiadm: cannot make connection to ${PORTAL} (exit status 8)`,
    ]);
  });

  test("of a pod gets no Secret of another namespace, whatever its volume says", async () => {
    const scene = new IscsiScene();
    const secretRef = { name: "chap", namespace: "kube-system" };
    const volumes = [{ name: "v", iscsi: { ...source, chapAuthSession: true, secretRef } }];
    const ref = { kind: "Secret", namespace: "kube-system", name: "chap" } as const;
    scene.objects.put(ref, { metadata: {}, data: { "node.session.auth.password": "aHVzaA==" } });
    assert.match(await scene.refusal(scene.user("a", { volumes })), /couldn't get secret default\/chap/);
  });

  test("whose password open-iscsi refuses and repeats says so without it", async () => {
    const scene = new IscsiScene({ chapAuthSession: true, secretRef: { name: "chap" } });
    scene.objects.put(...secret("chap", { "node.session.auth.password": "hush" }));
    const { onRun } = scene.machine;
    scene.machine.onRun = (command, input) =>
      command.includes("node.session.auth.password")
        ? { code: 7, stdout: "", stderr: "iscsiadm: invalid value hush for password" }
        : onRun(command, input);
    await scene.refusal(scene.user("a"));
    assert.match(scene.events[0] ?? "", /"node\.session\.auth\.password" error: iscsiadm: invalid value \*\*\* for/);
    assert.doesNotMatch(`${scene.events.join()} ${scene.next?.why}`, /hush/);
  });

  test("whose unit does not exist is waited for 30 s, and named", async () => {
    const scene = new IscsiScene({ lun: 7 });
    const prepared = scene.prepare(scene.user("a"));
    prepared.catch(() => undefined);
    await scene.clock.advance(30_000);
    assert.match(
      scene.events.at(-1) ?? "",
      /Timed out waiting for device at path \/dev\/disk\/by-path\/ip-.*-lun-7 after 30s/,
    );
    await scene.teardown("a");
    scene.assertGone();
  });

  test("on a machine without open-iscsi says what to install", async () => {
    const scene = new IscsiScene();
    scene.machine.onRun = () => Promise.reject(Object.assign(new Error("spawn iscsiadm ENOENT"), { code: "NotFound" }));
    assert.match(await scene.refusal(scene.user("a")), /install open-iscsi/);
  });

  test("that the original kubelet attached is detached by its file below the mount", async () => {
    const scene = new IscsiScene({ portals: ["10.0.0.10"] });
    scene.network.targets.push({ portal: "10.0.0.10:3260", iqn: IQN, luns: [1] });
    const prepared = scene.prepare(scene.user("a"));
    // Nobody makes a multipath device.
    await scene.clock.advance(10_000);
    await prepared;
    for (const path of [...scene.machine.modes.keys()]) {
      if (path.startsWith("/root/pods/uid-of-a/plugins")) await scene.machine.removeFile(path);
    }
    scene.volumes = scene.newAgent();
    await scene.teardown("a");
    await scene.clock.advance(1000);
    scene.assertGone();
  });

  for (const [name, text] of [
    ["is missing", undefined],
    ["is cut off", '{"VolName":"pv'],
    ["has no portal", '{"Portals":[],"Iqn":"x"}'],
  ] as const) {
    test(`whose file ${name} is logged out of by its path`, async () => {
      const scene = new IscsiScene();
      await scene.prepare(scene.user("a"));
      if (text === undefined) await scene.machine.removeFile(`${STAGED}/iscsi.json`);
      else scene.machine.files.set(`${STAGED}/iscsi.json`, text);
      await scene.teardown("a");
      scene.assertGone();
    });
  }

  for (const [name, fields] of [
    ["target", { iqn: "../../etc" }],
    ["portal", { targetPortal: "../../etc" }],
    ["second portal", { portals: ["../../etc"] }],
    // The API server takes any text for it.
    ["interface", { iscsiInterface: "../../etc" }],
    ["copied interface", { iscsiInterface: "../../etc", initiatorName: "iqn.2026-01.com.example:node" }],
  ] as const) {
    test(`whose ${name} would leave its directory is refused, and nothing is made or run`, async () => {
      const scene = new IscsiScene(fields);
      assert.match(await scene.refusal(), /iscsi: "..\/..\/etc(:3260)?" is no name/);
      assert.deepEqual(scene.left("etc", "iface-"), []);
      assert.deepEqual(scene.network.calls, []);
    });
  }

  test("whose interface looks like an option of iscsiadm is refused", async () => {
    assert.match(await new IscsiScene({ iscsiInterface: "--version" }).refusal(), /iscsi: "--version" is no name/);
  });

  for (const isWanted of [true, false]) {
    test(`after a reboot is ${isWanted ? "logged in to again" : "gone with its directories"}`, async () => {
      const scene = new IscsiScene();
      await scene.prepare(scene.user("a"));
      scene.machine.mounts.clear();
      await scene.machine.run(["iscsiadm", "-m", "node", "-p", PORTAL, "-T", IQN, "--logout"], {});
      scene.volumes = scene.newAgent();
      if (isWanted) {
        await scene.prepare(scene.user("a"));
        assert.deepEqual([...scene.machine.mounts.keys()], [STAGED, mountOf("a")]);
        await scene.teardown("a");
      } else assert.deepEqual(await scene.volumes.removeOrphans(() => false, scene.never), []);
      scene.assertGone();
    });
  }

  test("whose data is still written back is not taken away, also by an agent that does not know of it", async () => {
    const scene = new IscsiScene();
    await scene.prepare(scene.user("a"));
    scene.machine.held.add("/dev/sdb");
    await scene.teardown("a");
    scene.volumes = scene.newAgent();
    assert.deepEqual(await scene.volumes.removeOrphans(() => true, scene.never), [STAGED]);
    assert.equal(scene.network.all().length, 1);
    scene.machine.held.clear();
    assert.deepEqual(await scene.volumes.removeOrphans(() => true, scene.never), []);
    scene.assertGone();
  });

  test("that cannot be logged out of does not keep its pod, and is tried again", async () => {
    const scene = new IscsiScene();
    await scene.prepare(scene.user("a"));
    const { onRun } = scene.machine;
    scene.machine.onRun = (command, input) =>
      command.includes("--logout") ? { code: 1, stdout: "", stderr: "busy" } : onRun(command, input);
    await scene.teardown("a");
    assert.equal(scene.network.sessions.length, 1);
    scene.machine.onRun = onRun;
    await scene.clock.advance(500);
    scene.assertGone();
  });
});

for (const volumeMode of ["Filesystem", "Block"]) {
  describe(`kill -9 after every call, of an iSCSI disk with volumeMode ${volumeMode}`, () => {
    const made = (machine: DoomedMachine): IscsiScene => new IscsiScene({}, { machine, volumeMode });

    test("setting up: the next agent goes on, and tears down without an API server", async () => {
      const calls = await killedAfterEveryCall({
        scene: made,
        work: (of) => of.refusal(of.user("a")),
        next: async (of, round) => {
          await of.prepare(of.user("a"));
          assert.equal(of.network.sessions.length, 1, round);
          of.loseApiServer();
          await of.teardown("a");
          of.assertGone(round);
        },
      });
      assert.ok(calls >= 12, `${calls}`);
    });

    test("setting up: the next agent finds an orphan", async () => {
      await killedAfterEveryCall({
        scene: made,
        work: (of) => of.refusal(of.user("a")),
        next: async (of, round) => {
          of.loseApiServer();
          assert.deepEqual(await of.volumes.removeOrphans(() => false, of.never), [], round);
          of.assertGone(round);
        },
      });
    });

    test("tearing down: the next agent goes on", async () => {
      const calls = await killedAfterEveryCall({
        scene: made,
        before: (of) => of.prepare(of.user("a")),
        work: (of) => of.teardown("a"),
        next: async (of, round) => {
          of.loseApiServer();
          await of.teardown("a");
          assert.deepEqual(await of.volumes.removeOrphans(() => false, of.never), [], round);
          of.assertGone(round);
        },
      });
      assert.ok(calls >= 8, `${calls}`);
    });

    test("tearing down one of two: the other keeps its disk", async () => {
      await killedAfterEveryCall({
        scene: made,
        before: async (of) => {
          for (const name of ["a", "b"]) await of.prepare(of.user(name));
        },
        work: (of) => of.teardown("a"),
        next: async (of, round) => {
          await of.teardown("a");
          assert.equal(of.network.all().length, 1, round);
          await of.teardown("b");
          of.assertGone(round);
        },
      });
    });
  });
}
