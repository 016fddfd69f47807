import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { pod } from "../../../test/support/pods.ts";
import { Metrics } from "../../lib/metrics.ts";
import type { Pod, SELinuxOptions } from "../../model/generated/types.ts";
import { fileLabel, volumeLabels } from "./file-label.ts";
import {
  accessModeLabel,
  contextOption,
  decideMountLabel,
  type MountLabel,
  type MountLabelFacts,
} from "./mount-label.ts";
import { VolumeLabels } from "./volume-label.ts";

const CONTEXTS = { process: "system_u:system_r:container_t:s0", file: "system_u:object_r:container_file_t:s0" };
const LEVEL = "s0:c10,c20";
const LABEL = `system_u:object_r:container_file_t:${LEVEL}`;

describe("the label of a container's files", () => {
  const cases: [string, SELinuxOptions, string | undefined, typeof CONTEXTS?][] = [
    ["a level", { level: LEVEL }, LABEL],
    ["role and type of the process are not those of its files", { level: LEVEL, role: "r", type: "spc_t" }, LABEL],
    ["a user", { level: LEVEL, user: "me_u" }, `me_u:object_r:container_file_t:${LEVEL}`],
    ["no options", {}, undefined],
    ["no level: the runtime chooses one", { type: "spc_t" }, undefined],
    [
      "a policy without levels",
      { user: "me_u" },
      "me_u:object_r:container_file_t",
      { process: "system_u:system_r:container_t", file: "system_u:object_r:container_file_t" },
    ],
  ];
  for (const [name, options, want, contexts = CONTEXTS] of cases) {
    test(`${name}: ${want ?? "unknown"}`, () => assert.equal(fileLabel(options, contexts), want));
  }
});

function user(containers: Record<string, SELinuxOptions | undefined>, shared?: SELinuxOptions): Pod {
  let made = pod("web");
  for (const [name, seLinuxOptions] of Object.entries(containers)) {
    const securityContext = seLinuxOptions && { securityContext: { seLinuxOptions } };
    const mounts = name === "other" ? [] : [{ name: "v", mountPath: "/v" }];
    made = made.container(name, { volumeMounts: mounts, ...securityContext });
  }
  return made.with(shared === undefined ? {} : { securityContext: { seLinuxOptions: shared } }).build();
}

describe("the labels that containers want of a volume", () => {
  const other = "s0:c1,c2";
  const cases: [string, Pod, readonly (string | undefined)[]][] = [
    ["none without options", user({ app: undefined }), []],
    ["the pod's", user({ app: undefined }, { level: LEVEL }), [LABEL]],
    ["the container's before the pod's", user({ app: { level: LEVEL } }, { level: other }), [LABEL]],
    ["one for two that agree", user({ a: { level: LEVEL }, b: { level: LEVEL } }), [LABEL]],
    ["not of one that does not mount it", user({ app: { level: LEVEL }, other: { level: other } }), [LABEL]],
    [
      "two for two that do not agree",
      user({ a: { level: LEVEL }, b: { level: other } }),
      [LABEL, `system_u:object_r:container_file_t:${other}`],
    ],
  ];
  for (const [name, of, want] of cases) {
    test(name, () => assert.deepEqual([...volumeLabels(of, "v", CONTEXTS)], want));
  }
});

describe("the label that a volume is mounted with", () => {
  const base: MountLabelFacts = {
    labels: new Set([LABEL]),
    accessModes: ["ReadWriteOncePod"],
    isSupported: true,
    isForAllModes: false,
    changePolicy: undefined,
  };
  const label: MountLabel = { kind: "label", label: LABEL };
  const later: MountLabel = { kind: "later", label: LABEL };
  const none: MountLabel = { kind: "none" };
  const two = new Set([LABEL, "b"]);
  const cases: [string, Partial<MountLabelFacts>, MountLabel][] = [
    ["ReadWriteOncePod", {}, label],
    ["ReadWriteOncePod among others", { accessModes: ["ReadWriteOncePod", "ReadWriteOnce"] }, later],
    ["ReadWriteOnce", { accessModes: ["ReadWriteOnce"] }, later],
    ["ReadWriteMany, with the gate for all modes", { accessModes: ["ReadWriteMany"], isForAllModes: true }, label],
    ["a volume that a pod names itself, with that gate", { accessModes: undefined, isForAllModes: true }, later],
    ["a driver that does not allow it", { isSupported: false }, none],
    ["a pod that wants its files changed one by one", { changePolicy: "Recursive" }, none],
    ["a pod that wants a mount option", { changePolicy: "MountOption" }, label],
    ["no label", { labels: new Set() }, none],
    ["a label that nobody knows", { labels: new Set([undefined]) }, none],
    ["two labels", { labels: two }, { kind: "conflict", labels: ["b", LABEL], isError: true }],
    [
      "two labels of a volume that is not mounted with one",
      { labels: two, accessModes: ["ReadWriteOnce"] },
      { kind: "conflict", labels: ["b", LABEL], isError: false },
    ],
    [
      "one label, and one that nobody knows",
      { labels: new Set([LABEL, undefined]) },
      { kind: "conflict", labels: ["", LABEL], isError: true },
    ],
  ];
  for (const [name, facts, want] of cases) {
    test(`${name}: ${want.kind}`, () => assert.deepEqual(decideMountLabel({ ...base, ...facts }), want));
  }

  test("is an option with quotes, because of the commas in it", () => {
    assert.equal(contextOption(LABEL), `context="${LABEL}"`);
  });

  test("metrics count a volume by its widest access mode", () => {
    const modes = [
      ["ReadWriteOncePod", "ReadWriteMany"],
      ["ReadOnlyMany"],
      ["ReadWriteOnce"],
      ["ReadWriteOncePod"],
      [],
    ];
    assert.deepEqual([...modes, undefined].map(accessModeLabel), ["RWX", "ROX", "RWO", "RWOP", "", "inline"]);
  });
});

describe("volumes of a node with SELinux", () => {
  const of = {
    pod: user({ app: { level: LEVEL } }),
    name: "v",
    plugin: "kubernetes.io/csi/d",
    accessModes: ["ReadWriteOncePod"],
  };

  test("get their label, and are counted", async () => {
    const metrics = new Metrics();
    const labels = new VolumeLabels({ contexts: CONTEXTS, metrics, isForAllModes: false });
    assert.equal(await labels.labelOf({ ...of, isSupported: async () => true }), LABEL);
    const two = user({ a: { level: LEVEL }, b: { level: "s0:c1,c2" } });
    await assert.rejects(
      labels.labelOf({ ...of, pod: two, isSupported: async () => true }),
      /^Error: multiple SELinux labels found: system_u:.*:s0:c1,c2,system_u:.*:s0:c10,c20$/,
    );
    const { body } = await metrics.expose();
    assert.match(body, /selinux_volumes_admitted_total\{volume_plugin="kubernetes.io\/csi\/d",access_mode="RWOP"\} 1/);
    assert.match(body, /selinux_pod_context_mismatch_errors_total\{access_mode="RWOP"\} 1/);
  });

  for (const level of ['s0",suid,journal_path=/dev/sda,x="', "s0\\", "s0\n", "s0\0"]) {
    test(`are refused a label that would be more than one mount option: ${JSON.stringify(level)}`, async () => {
      const labels = new VolumeLabels({ contexts: CONTEXTS, isForAllModes: false });
      const bad = { ...of, pod: user({ app: { level } }) };
      await assert.rejects(labels.labelOf({ ...bad, isSupported: async () => true }), /cannot be a mount option/);
      assert.equal(await labels.labelOf({ ...bad, isSupported: async () => false }), undefined);
    });
  }

  test("have none without SELinux, and no driver is asked", async () => {
    const labels = new VolumeLabels({ contexts: undefined, isForAllModes: true });
    assert.equal(await labels.labelOf({ ...of, isSupported: () => Promise.reject(new Error("asked")) }), undefined);
  });
});
