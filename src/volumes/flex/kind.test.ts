import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ClaimedScene } from "../../../test/support/claimed-volume.ts";
import { type DoomedMachine, killedAfterEveryCall } from "../../../test/support/doomed-machine.ts";
import { FakeFlex } from "../../../test/support/fake-flex.ts";
import { secret } from "../../../test/support/objects.ts";
import { VolumeMachine } from "../../../test/support/volume-machine.ts";
import { TimeLimitError } from "../../lib/abort.ts";
import { LiveValue } from "../../lib/live.ts";
import type { FlexPersistentVolumeSource, PersistentVolumeSpec } from "../../model/generated/types.ts";
import { DiskAttachments } from "../disks/disk-attachments.ts";
import { VOLUME_KINDS } from "../kinds/index.ts";
import type { VolumeReconciler } from "../reconciler.ts";
import type { NodeVolumes } from "../volumes-in-use.ts";
import { FlexDrivers } from "./drivers.ts";
import { FlexFamily } from "./family.ts";

const DRIVER = "example.com/disks";
const STAGED = `/root/plugins/kubernetes.io/flexvolume/${DRIVER}/mounts/pv-1`;
const mountOf = (name: string): string => `/root/pods/uid-of-${name}/volumes/example.com~disks/pv-1`;
const FILE = { path: "/exec/example.com~disks/disks", identity: "1" };

/** The claim once its volume has grown. */
const GROWN = {
  metadata: { name: "data", namespace: "default", uid: "claim-1" },
  spec: { volumeName: "pv-1" },
  status: { phase: "Bound", capacity: { storage: "2Gi" } },
};

interface Options extends PersistentVolumeSpec {
  readonly machine?: VolumeMachine;
  readonly isManaged?: boolean;
  readonly readOnly?: boolean;
}

/** Claims of a flexVolume driver that is installed. */
class FlexScene extends ClaimedScene {
  readonly flex: FakeFlex;
  readonly reported = new LiveValue<NodeVolumes>({ inUse: [], attached: [] });
  drivers: FlexDrivers;
  attachments: DiskAttachments;
  private readonly isManaged: boolean;

  constructor(source: Partial<FlexPersistentVolumeSource> = {}, options: Options = {}) {
    const { machine = new VolumeMachine(), isManaged = false, readOnly = false, ...spec } = options;
    super({ flexVolume: { driver: DRIVER, ...source }, ...spec }, { kinds: VOLUME_KINDS, machine, readOnly });
    this.isManaged = isManaged;
    this.flex = new FakeFlex(this.machine);
    [this.drivers, this.attachments] = this.flexParts();
    this.volumes = this.newAgent();
  }

  override newAgent(): VolumeReconciler {
    // The first agent is made before the fields are.
    if (this.flex === undefined) return super.newAgent();
    [this.drivers, this.attachments] = this.flexParts();
    const { drivers, attachments } = this;
    const claims = { patchStatus: () => Promise.resolve(GROWN) };
    return this.agentWith(VOLUME_KINDS, { claims }, [new FlexFamily({ drivers, attachments, nodeName: "here" })]);
  }

  assertGone(message = ""): void {
    assert.deepEqual(this.left("pv-1"), [], message);
  }

  private flexParts(): [FlexDrivers, DiskAttachments] {
    const drivers = new FlexDrivers(this.machine.asHost(), "/exec");
    drivers.found(
      new Map([
        ["example.com~disks", FILE],
        ["plain", { ...FILE, path: "/exec/plain/plain" }],
      ]),
    );
    const { clock, reported } = this;
    const attachments = new DiskAttachments({ clock, reported, isManaged: () => this.isManaged });
    attachments.restore([]);
    return [drivers, attachments];
  }
}

const options = (text = ""): unknown => JSON.parse(text);
const common = {
  "kubernetes.io/fsType": "ext4",
  "kubernetes.io/pvOrVolumeName": "pv-1",
  "kubernetes.io/readwrite": "rw",
};
const ofPod = {
  "kubernetes.io/pod.name": "a",
  "kubernetes.io/pod.namespace": "default",
  "kubernetes.io/pod.uid": "uid-of-a",
  "kubernetes.io/serviceAccount.name": "robot",
};

test("a pod that goes while a driver is initialized ends that for no other", async () => {
  const scene = new FlexScene();
  const { onRun } = scene.machine;
  let release = (): void => undefined;
  const started = new Promise<void>((resolve) => {
    release = resolve;
  });
  scene.machine.onRun = async (command, input) => {
    if (command[1] === "init") await started;
    return onRun(command, input);
  };
  const stop = new AbortController();
  const first = scene.volumes.prepare(scene.user("a"), { signal: stop.signal });
  first.catch(() => undefined);
  const second = scene.prepare(scene.user("b"));
  await scene.clock.advance(0);
  stop.abort(new Error("deleted"));
  await scene.teardown("a");
  release();
  await second;
  assert.deepEqual(scene.events, []);
  assert.equal(scene.flex.calls.filter(([command]) => command === "init").length, 1);
});

test("a pod gets no Secret of another namespace, whatever its volume says", async () => {
  const scene = new FlexScene();
  const secretRef = { name: "keys", namespace: "kube-system" };
  const volumes = [{ name: "v", flexVolume: { driver: DRIVER, secretRef } }];
  scene.objects.put(
    { kind: "Secret", namespace: "kube-system", name: "keys" },
    { metadata: {}, data: { key: "aHVzaA==" } },
  );
  assert.match(await scene.refusal(scene.user("a", { volumes })), /couldn't get secret default\/keys/);
});

test("a disk for one pod at a time is refused to the second", async () => {
  const scene = new FlexScene({}, { accessModes: ["ReadWriteOncePod"] });
  await scene.prepare(scene.user("a"));
  assert.match(await scene.refusal(scene.user("b")), /already in use by another pod/);
  await scene.teardown("a");
  await scene.prepare(scene.user("b"));
});

describe("disks that pods name themselves, by the same name of a volume", () => {
  const of = (disk: string, readOnly = false) => ({
    volumes: [{ name: "data", flexVolume: { driver: DRIVER, options: { disk }, readOnly } }],
  });

  test("are not the same disk: a pod never gets that of another", async () => {
    const scene = new FlexScene();
    await scene.prepare(scene.user("a", of("of-a")));
    const mounts = [...scene.machine.mounts.keys()];
    assert.match(await scene.refusal(scene.user("b", of("of-b"))), /volume "data" of driver .* is another disk/);
    assert.deepEqual([...scene.machine.mounts.keys()], mounts);
    await scene.teardown("a");
    assert.equal(await scene.refusal(scene.user("b", of("of-b"))), "");
    assert.match(scene.flex.last("mountdevice")[2] ?? "", /of-b/);
  });

  test("that is left mounted without a pod is unmounted first, also by the next agent", async () => {
    const scene = new FlexScene();
    await scene.prepare(scene.user("a", of("of-a")));
    const { onRun } = scene.machine;
    scene.machine.onRun = (command, input) => {
      if (command[1] === "unmountdevice") throw new Error("busy");
      return onRun(command, input);
    };
    await scene.teardown("a");
    scene.machine.onRun = onRun;
    scene.volumes = scene.newAgent();
    await scene.prepare(scene.user("b", of("of-b")));
    assert.match(scene.flex.last("mountdevice")[2] ?? "", /of-b/);
    assert.ok(scene.flex.commands.includes("unmountdevice"));
  });

  for (const driver of [DRIVER, "plain"]) {
    test(`that ${driver} left mounted without a pod is unmounted by the next agent`, async () => {
      const scene = new FlexScene({ driver });
      await scene.prepare(scene.user("a"));
      scene.flex.faults.set("unmountdevice", { code: 1, stdout: '{"status":"Failure"}', stderr: "" });
      await scene.teardown("a");
      assert.equal(scene.machine.mounts.size, 1);
      scene.flex.faults.clear();
      scene.volumes = scene.newAgent();
      assert.deepEqual(await scene.volumes.removeOrphans(() => false, scene.never), []);
      await scene.clock.advance(500);
      scene.assertGone();
    });
  }

  test("are the same with the same options: they share it", async () => {
    const scene = new FlexScene();
    await scene.prepare(scene.user("a", of("shared")));
    await scene.prepare(scene.user("b", of("shared", true)));
    assert.equal(scene.flex.commands.filter((command) => command === "mountdevice").length, 1);
    for (const name of ["a", "b"]) await scene.teardown(name);
    assert.deepEqual(scene.left("data"), []);
  });
});

describe("the protocol of flexVolume", () => {
  test("a driver that does all of it itself: each call with its arguments", async () => {
    const scene = new FlexScene({ fsType: "ext4", options: { size: "1", "kubernetes.io/readwrite": "mine" } });
    await scene.prepare(scene.user("a", { serviceAccountName: "robot", securityContext: { fsGroup: 7 } }));
    const { flex } = scene;
    assert.deepEqual(flex.commands, ["getvolumename", "isattached", "attach", "waitforattach", "mountdevice", "mount"]);
    const spec = { ...common, size: "1", "kubernetes.io/readwrite": "mine" };
    assert.deepEqual(options(flex.last("getvolumename")[0]), spec);
    assert.deepEqual([options(flex.last("attach")[0]), flex.last("attach")[1]], [spec, "here"]);
    assert.deepEqual([flex.last("waitforattach")[0], options(flex.last("waitforattach")[1])], ["/dev/flex0", spec]);
    const [path, device, text] = flex.last("mountdevice");
    assert.deepEqual([path, device, options(text)], [STAGED, "/dev/flex0", spec]);
    const [directory, told] = flex.last("mount");
    const wanted = { ...spec, ...ofPod, "kubernetes.io/mounterArgs.FsGroup": "7" };
    assert.deepEqual([directory, options(told)], [mountOf("a"), wanted]);
    assert.equal(scene.machine.groups.get(mountOf("a"))?.gid, 7);
    scene.loseApiServer();
    flex.calls.length = 0;
    await scene.teardown("a");
    assert.deepEqual(flex.calls, [
      ["unmount", mountOf("a")],
      ["unmountdevice", STAGED],
      ["detach", "pv-1", "here"],
    ]);
    scene.assertGone();
  });

  test("a disk that is attached already is not attached again", async () => {
    const scene = new FlexScene();
    const stdout = '{"status":"Success","attached":true,"device":"/dev/known"}';
    scene.flex.faults.set("isattached", { code: 0, stdout, stderr: "" });
    await scene.prepare(scene.user("a"));
    assert.equal(scene.flex.commands.includes("attach"), false);
    assert.equal(scene.flex.last("waitforattach")[0], "/dev/known");
  });

  test("the options of a volume are in the order of their names, as in Kubernetes", async () => {
    const scene = new FlexScene({ fsType: "ext4", options: { b: "1", Z: "2", a: "3", "kubernetes.io/x": "4" } });
    await scene.prepare(scene.user("a"));
    const names = Object.keys(options(scene.flex.last("attach")[0]) as object);
    assert.deepEqual(names, ["Z", "a", "b", ...Object.keys(common), "kubernetes.io/x"]);
  });

  test("a claim of a block device is refused", async () => {
    const scene = new FlexScene({}, { volumeMode: "Block" });
    assert.match(await scene.refusal(scene.user("a")), /a flexVolume has no block devices/);
  });

  test("a link that a driver puts in the place of the directory is removed", async () => {
    const scene = new FlexScene();
    await scene.prepare(scene.user("a"));
    await scene.machine.symlink("/srv/data", mountOf("a"));
    await scene.teardown("a");
    scene.assertGone();
  });

  test("a driver that has none of the commands: the agent makes, mounts and binds itself", async () => {
    const scene = new FlexScene({ fsType: "xfs" });
    for (const name of ["getvolumename", "isattached", "waitforattach", "mountdevice", "mount"] as const)
      scene.flex.missing.add(name);
    for (const name of ["unmount", "unmountdevice", "detach"] as const) scene.flex.missing.add(name);
    await scene.prepare(scene.user("a"));
    assert.deepEqual(
      [...scene.machine.mounts],
      [
        [STAGED, { type: "xfs, or made", source: "/dev/flex0", options: ["rw"] }],
        [mountOf("a"), { type: "bind", source: STAGED, options: [] }],
      ],
    );
    const asked = scene.flex.commands.length;
    await scene.prepare(scene.user("b"));
    assert.deepEqual(scene.flex.commands.slice(asked), [], "a missing command is not called again");
    await scene.teardown("a");
    await scene.teardown("b");
    scene.assertGone();
  });

  test("a driver that does not attach mounts for each pod, and has no stage", async () => {
    const scene = new FlexScene();
    scene.flex.capabilities = { attach: false, fsGroup: false };
    await scene.prepare(scene.user("a", { securityContext: { fsGroup: 7 } }));
    assert.deepEqual(scene.flex.commands, ["mount"]);
    assert.deepEqual([[...scene.machine.mounts.keys()], scene.machine.groups.size], [[mountOf("a")], 0]);
    await scene.teardown("a");
    assert.deepEqual(scene.flex.commands, ["mount", "unmount"]);
    scene.assertGone();
  });

  test("without a device nothing is mounted once: the driver mounts for each pod", async () => {
    const scene = new FlexScene();
    scene.flex.device = "";
    scene.flex.missing.add("mountdevice");
    await scene.prepare(scene.user("a"));
    assert.deepEqual([...scene.machine.mounts.keys()], [mountOf("a")]);
    await scene.teardown("a");
    scene.assertGone();
  });

  test("read-only is told to the driver, and gets no group", async () => {
    const scene = new FlexScene({}, { readOnly: true });
    await scene.prepare(scene.user("a", { securityContext: { fsGroup: 7 } }));
    assert.match(scene.flex.last("mount")[1] ?? "", /"kubernetes.io\/readwrite":"ro"/);
    assert.equal(scene.machine.groups.size, 0);
  });

  test("a secret that is no text reaches the driver byte by byte", async () => {
    const scene = new FlexScene({ secretRef: { name: "login" } });
    const [ref] = secret("login", {});
    scene.objects.put(ref, { metadata: { name: "login" }, data: { key: "//79gA==" } });
    await scene.prepare(scene.user("a"));
    assert.match(scene.flex.last("mount")[1] ?? "", /"kubernetes.io\/secret\/key":"\/\/79gA=="/);
  });

  test("secrets reach the driver in base64, and nothing else", async () => {
    const scene = new FlexScene({ secretRef: { name: "login" } });
    scene.objects.put(...secret("login", { key: "hush" }));
    const encoded = Buffer.from("hush").toString("base64");
    scene.flex.faults.set("mount", { code: 1, stdout: `no ${encoded} and no hush`, stderr: "" });
    await scene.refusal(scene.user("a"));
    assert.match(scene.flex.last("mount")[1] ?? "", new RegExp(`"kubernetes.io/secret/key":"${encoded}"`));
    const said = scene.events.join();
    assert.match(said, /the driver printed "no \*\*\* and no \*\*\*" instead of JSON \(exit status 1\)/);
    for (const text of [said, ...scene.machine.files.values()])
      assert.doesNotMatch(text, new RegExp(`hush|${encoded}`));
  });

  test("a Secret that is missing keeps the pod waiting", async () => {
    const scene = new FlexScene({ secretRef: { name: "login", namespace: "far" } });
    assert.match(
      await scene.refusal(scene.user("a")),
      /couldn't get secret far\/login error: secret "login" not found/,
    );
  });

  test("mount options are refused in the words of Kubernetes", async () => {
    const scene = new FlexScene({}, { mountOptions: ["noatime"] });
    await scene.refusal(scene.user("a"));
    assert.deepEqual(scene.events, [
      'FailedMount: MountVolume.MountOptionSupport check failed for volume "pv-1" : mount options are not supported for this volume type',
    ]);
  });

  test("a volume of the pod itself goes by its name in the pod", async () => {
    const scene = new FlexScene();
    const volumes = [{ name: "own", flexVolume: { driver: DRIVER } }];
    await scene.prepare({ ...scene.web, spec: { ...scene.web.spec, volumes } });
    const path = "/root/pods/uid-of-web/volumes/example.com~disks/own";
    assert.ok(scene.machine.mounts.has(path));
    assert.deepEqual(scene.volumes.source({ ...scene.web, spec: { ...scene.web.spec, volumes } }, "own"), {
      kind: "path",
      path,
      readonly: false,
      isRemote: true,
    });
  });
});

describe("a driver of the cluster's attach controller", () => {
  test("is not asked to attach: its volume is in use first, and mounted with the device of the node's status", async () => {
    const scene = new FlexScene({}, { isManaged: true });
    const prepared = scene.prepare(scene.user("a"));
    await scene.clock.advance(0);
    const name = `${DRIVER}/pv-1`;
    assert.deepEqual(scene.attachments.inUse.current, [name]);
    scene.reported.set({ inUse: [name], attached: [name], devicePaths: { [name]: "/dev/by-controller" } });
    await prepared;
    assert.deepEqual(scene.flex.commands, ["getvolumename", "waitforattach", "mountdevice", "mount"]);
    assert.equal(scene.flex.last("waitforattach")[0], "/dev/by-controller");
    await scene.teardown("a");
    assert.equal(scene.flex.commands.includes("detach"), false);
    assert.deepEqual(scene.attachments.inUse.current, []);
  });
});

describe("a driver on a bad day", () => {
  const result = (code: number, stdout: string, stderr = ""): { code: number; stdout: string; stderr: string } => ({
    code,
    stdout,
    stderr,
  });
  const bad: readonly (readonly [string, string, ReturnType<typeof result> | Error, RegExp])[] = [
    [
      "fails",
      "mount",
      result(1, '{"status":"Failure","message":"no disk"}'),
      /mount command failed, status: Failure, reason: no disk/,
    ],
    ["prints garbage", "mount", result(0, "oops"), /the driver printed .*oops.* instead of JSON \(exit status 0\)/],
    ["ends without a word", "mount", result(3, ""), /the driver printed nothing instead of JSON \(exit status 3\)/],
    ["is killed", "mount", { ...result(0, ""), code: undefined as unknown as number }, /\(signal: killed\)/],
    ["answers on the wrong output", "mount", result(1, "", '{"status":"Failure","message":"x"}'), /reason: x/],
    [
      "reports success and fails",
      "mount",
      result(1, '{"status":"Success"}'),
      /reported success and ended with exit status 1/,
    ],
    ["prints a list", "mount", result(0, "[]"), /instead of JSON/],
    [
      "hangs",
      "mount",
      new TimeLimitError(120_000),
      /mount command failed: driver example.com\/disks did not answer within 120 s and was killed/,
    ],
    [
      "cannot be initialized",
      "init",
      result(1, '{"status":"Failure","message":"no licence"}'),
      /init command failed, status: Failure, reason: no licence/,
    ],
    ["hangs for a device", "waitforattach", new TimeLimitError(600_000), /did not answer within 600 s/],
  ];
  for (const [name, command, fault, words] of bad) {
    test(`that ${name} says so, and is called again with the same arguments`, async () => {
      const scene = new FlexScene();
      scene.flex.faults.set(command, fault);
      const prepared = scene.prepare(scene.user("a"));
      await scene.clock.advance(0);
      assert.match(scene.events.join(), words);
      const first = scene.flex.calls.findLast(([one]) => one === command);
      scene.flex.faults.clear();
      await scene.clock.advance(500);
      await prepared;
      assert.deepEqual(
        scene.flex.calls.findLast(([one]) => one === command),
        first,
      );
      await scene.teardown("a");
      scene.assertGone();
    });
  }

  const steps: readonly (readonly [string, string])[] = [
    ["attach", "FailedAttachVolume: AttachVolume.Attach failed"],
    ["waitforattach", "FailedMount: MountVolume.WaitForAttach failed"],
    ["mountdevice", "FailedMount: MountVolume.MountDevice failed"],
    ["mount", "FailedMount: MountVolume.SetUp failed"],
  ];
  for (const [command, words] of steps) {
    test(`whose ${command} fails: the event names the step as Kubernetes does`, async () => {
      const scene = new FlexScene();
      scene.flex.faults.set(command, result(1, '{"status":"Failure","message":"m"}'));
      await scene.refusal(scene.user("a"));
      const why = `${words} for volume "pv-1" : ${command} command failed, status: Failure, reason: m`;
      assert.deepEqual(scene.events, [why]);
    });
  }

  test("that hangs when it unmounts keeps the pod and says so, and nothing is removed behind its mount", async () => {
    const scene = new FlexScene();
    await scene.prepare(scene.user("a"));
    scene.flex.faults.set("unmount", new TimeLimitError(120_000));
    await assert.rejects(scene.teardown("a"), /unmount command failed: driver .* did not answer within 120 s/);
    assert.match(scene.events.at(-1) ?? "", /^FailedUnMount: UnmountVolume.TearDown failed for volume "pv-1"/);
    assert.ok(scene.machine.mounts.has(mountOf("a")) && scene.machine.mounts.has(STAGED));
    scene.flex.faults.clear();
    await scene.teardown("a");
    scene.assertGone();
  });

  test("that says it unmounted and did not is not believed", async () => {
    const scene = new FlexScene();
    await scene.prepare(scene.user("a"));
    scene.flex.faults.set("unmount", result(0, '{"status":"Success"}'));
    await assert.rejects(scene.teardown("a"), /the driver left .* mounted/);
    assert.ok(scene.machine.mounts.has(mountOf("a")));
  });

  test("that cannot unmount its device keeps no pod: it is tried again", async () => {
    const scene = new FlexScene();
    await scene.prepare(scene.user("a"));
    scene.flex.faults.set("unmountdevice", result(1, '{"status":"Failure","message":"busy"}'));
    await scene.teardown("a");
    assert.ok(scene.machine.mounts.has(STAGED));
    scene.flex.faults.clear();
    await scene.clock.advance(500);
    scene.assertGone();
  });

  test("that says it unmounted its device and did not is not believed: the disk is not detached", async () => {
    const scene = new FlexScene();
    await scene.prepare(scene.user("a"));
    scene.flex.faults.set("unmountdevice", result(0, '{"status":"Success"}'));
    await scene.teardown("a");
    assert.deepEqual([scene.machine.mounts.has(STAGED), scene.flex.commands.includes("detach")], [true, false]);
    scene.flex.faults.clear();
    await scene.clock.advance(500);
    assert.ok(scene.flex.commands.includes("detach"));
    scene.assertGone();
  });

  test("does not unmount a device that somebody else has mounted elsewhere", async () => {
    const scene = new FlexScene();
    await scene.prepare(scene.user("a"));
    scene.machine.mounts.set("/mnt/backup", { type: "bind", source: STAGED });
    await scene.teardown("a");
    assert.equal(scene.flex.commands.includes("unmountdevice"), false);
    assert.ok(scene.machine.mounts.has(STAGED));
    scene.machine.mounts.delete("/mnt/backup");
    await scene.clock.advance(500);
    scene.assertGone();
  });

  test("that cannot bind for the agent keeps the pod waiting", async () => {
    const scene = new FlexScene();
    scene.flex.missing.add("mount");
    scene.machine.commandFaults.set("bind", new Error("mount failed: exit status 32"));
    assert.match(await scene.refusal(scene.user("a")), /mount failed: exit status 32/);
  });

  test("that is not installed keeps the pod waiting, and is used as soon as it is", async () => {
    const scene = new FlexScene();
    const volumes = [{ name: "own", flexVolume: { driver: DRIVER } }];
    scene.drivers.found(new Map());
    const web = { ...scene.web, spec: { ...scene.web.spec, volumes } };
    const prepared = scene.prepare(web);
    await scene.clock.advance(3000);
    assert.match(
      scene.events.at(-1) ?? "",
      /flexVolume driver example.com\/disks is not installed in \/exec: no volume plugin/,
    );
    scene.drivers.found(new Map([["example.com~disks", FILE]]));
    await prepared;
  });

  test("that was replaced is initialized anew, and its commands are tried again", async () => {
    const scene = new FlexScene();
    scene.flex.missing.add("mount");
    await scene.prepare(scene.user("a"));
    scene.flex.missing.clear();
    scene.flex.calls.length = 0;
    scene.drivers.found(new Map([["example.com~disks", { ...FILE, identity: "2" }]]));
    await scene.prepare(scene.user("b"));
    assert.deepEqual(
      scene.flex.calls.map(([command]) => command),
      ["init", "getvolumename", "mount"],
    );
  });

  test("that was removed keeps its volumes as they are until it is back", async () => {
    const scene = new FlexScene();
    await scene.prepare(scene.user("a"));
    scene.volumes = scene.newAgent();
    scene.drivers.found(new Map());
    assert.deepEqual(await scene.volumes.removeOrphans(() => false, scene.never), ["uid-of-a"]);
    assert.ok(scene.machine.mounts.has(mountOf("a")) && scene.machine.mounts.has(STAGED));
    scene.drivers.found(new Map([["example.com~disks", FILE]]));
    await scene.clock.advance(500);
    assert.deepEqual(await scene.volumes.removeOrphans(() => false, scene.never), []);
    scene.assertGone();
  });

  for (const driver of ["../../bin/sh", "a/b/c", "", "-x", "kubernetes.io/nfs"]) {
    test(`with the name ${JSON.stringify(driver)} is refused`, async () => {
      const scene = new FlexScene({ driver });
      assert.match(await scene.refusal(scene.user("a")), /is not the name of a flexVolume driver/);
    });
  }

  for (const [option, isTaken] of [
    ["kubernetes.io/readwrite", false],
    ["Sub.K8s.io/x", false],
    ["kubernetes.io", false],
    ["notkubernetes.io/x", true],
    ["size", true],
  ] as const) {
    test(`of a pod ${isTaken ? "may" : "may not"} set the option ${option}`, async () => {
      const scene = new FlexScene();
      const flexVolume = { driver: DRIVER, options: { [option]: "rw" } };
      const user = scene.user("a", { volumes: [{ name: "v", flexVolume }] });
      if (isTaken) return scene.prepare(user);
      const refusal = await scene.refusal(user);
      assert.ok(refusal.includes(`options[${option}]: kubernetes.io and k8s.io namespaces are reserved`), refusal);
      return undefined;
    });
  }
});

describe("a volume that grows", () => {
  const growing = async (scene: FlexScene) => {
    scene.objects.put(
      { kind: "PersistentVolumeClaim", namespace: "default", name: "data" },
      {
        metadata: { name: "data", namespace: "default", uid: "claim-1" },
        spec: { volumeName: "pv-1", resources: { requests: { storage: "2Gi" } } },
        status: { phase: "Bound", capacity: { storage: "1Gi" } },
      },
    );
    await scene.prepare(scene.user("a"));
    await scene.teardown("a");
  };

  test("is grown by its driver, which is told both sizes", async () => {
    const scene = new FlexScene({ fsType: "ext4" }, { capacity: { storage: "2Gi" } });
    await growing(scene);
    const [spec, ...rest] = scene.flex.last("expandfs");
    assert.deepEqual(options(spec), common);
    assert.deepEqual(rest, ["/dev/flex0", mountOf("a"), String(2 ** 31), String(2 ** 30)]);
  });

  test("of a driver that does not need it is left alone", async () => {
    const scene = new FlexScene({}, { capacity: { storage: "2Gi" } });
    scene.flex.capabilities = { requiresFSResize: false };
    await growing(scene);
    assert.equal(scene.flex.commands.includes("expandfs"), false);
  });
});

describe("kill -9 after every call", () => {
  const made = (machine: DoomedMachine): FlexScene => new FlexScene({}, { machine });

  test("setting up: the next agent goes on, and tears down without an API server", async () => {
    const calls = await killedAfterEveryCall({
      scene: made,
      work: (of) => of.refusal(of.user("a")),
      next: async (of, round) => {
        await of.prepare(of.user("a"));
        assert.deepEqual([...of.machine.mounts.keys()], [STAGED, mountOf("a")], round);
        of.loseApiServer();
        await of.teardown("a");
        of.assertGone(round);
      },
    });
    assert.ok(calls >= 10, `${calls}`);
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

  test("tearing down one of two: the other keeps what it has", async () => {
    await killedAfterEveryCall({
      scene: made,
      before: async (of) => {
        for (const name of ["a", "b"]) await of.prepare(of.user(name));
      },
      work: (of) => of.teardown("a"),
      next: async (of, round) => {
        await of.teardown("a");
        assert.deepEqual([...of.machine.mounts.keys()], [STAGED, mountOf("b")], round);
        await of.teardown("b");
        of.assertGone(round);
      },
    });
  });
});
