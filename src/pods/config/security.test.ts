import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { pod } from "../../../test/support/pods.ts";
import type { ContainerSecurity } from "../../adapters/runtime/port.ts";
import type { PodSecurityContext, PodSpec, SecurityContext } from "../../model/generated/types.ts";
import { ConfigError } from "./config-error.ts";
import { MASKED_PATHS, READONLY_PATHS } from "./masked-paths.ts";
import { containerSecurity, groupsOf, namespacesOf, type SecurityFacts } from "./security.ts";

interface Given {
  readonly own?: SecurityContext;
  readonly shared?: PodSecurityContext;
  readonly spec?: Partial<PodSpec>;
  readonly image?: SecurityFacts["image"];
  readonly annotation?: string;
}

const THROTTLE = "/sys/devices/system/cpu/cpu0/thermal_throttle";
const root = { username: "" };

function security({ own, shared, spec = {}, image = root, annotation }: Given): ContainerSecurity {
  const built = pod("web", "uid-1")
    .container("app", own === undefined ? {} : { securityContext: own })
    .with({ ...spec, ...(shared && { securityContext: shared }) })
    .build();
  const annotations = { "container.apparmor.security.beta.kubernetes.io/app": annotation ?? "" };
  const of = { ...built, metadata: { ...built.metadata, ...(annotation !== undefined && { annotations }) } };
  const container = of.spec.containers[0] ?? { name: "" };
  return containerSecurity(of, container, {
    image,
    seccompRoot: "/root/seccomp",
    seccompDefault: false,
    extraMaskedPaths: [THROTTLE],
  });
}

describe("namespaces", () => {
  const cases: [string, Partial<PodSpec>, object][] = [
    ["a pod's own", {}, { network: "pod", ipc: "pod", pid: "container" }],
    ["the node's network", { hostNetwork: true }, { network: "node", ipc: "pod", pid: "container" }],
    ["the node's IPC", { hostIPC: true }, { network: "pod", ipc: "node", pid: "container" }],
    ["the node's processes", { hostPID: true }, { network: "pod", ipc: "pod", pid: "node" }],
    ["processes shared in the pod", { shareProcessNamespace: true }, { network: "pod", ipc: "pod", pid: "pod" }],
  ];
  for (const [name, spec, want] of cases) {
    test(name, () => {
      assert.deepEqual(namespacesOf(pod().container("app").with(spec).build()), want);
      assert.deepEqual(security({ spec }).namespaces, want);
    });
  }
});

describe("the user", () => {
  const cases: { name: string; given: Given; want: object }[] = [
    { name: "an image without one runs as root, said explicitly", given: {}, want: { runAsUser: 0 } },
    { name: "the image's number", given: { image: { uid: 7, username: "" } }, want: { runAsUser: 7 } },
    { name: "the image's name", given: { image: { username: "www" } }, want: { runAsUsername: "www" } },
    {
      name: "the pod's before the image's",
      given: { shared: { runAsUser: 8 }, image: { username: "www" } },
      want: { runAsUser: 8 },
    },
    {
      name: "the container's before the pod's",
      given: { own: { runAsUser: 9 }, shared: { runAsUser: 8 } },
      want: { runAsUser: 9 },
    },
    { name: "0 is a user too", given: { own: { runAsUser: 0 }, shared: { runAsUser: 8 } }, want: { runAsUser: 0 } },
    {
      name: "not root, and it is not",
      given: { shared: { runAsNonRoot: true }, image: { uid: 7, username: "" } },
      want: { runAsUser: 7 },
    },
    {
      name: "the container may run as root where the pod may not",
      given: { own: { runAsNonRoot: false }, shared: { runAsNonRoot: true } },
      want: { runAsUser: 0 },
    },
  ];
  for (const { name, given, want } of cases) {
    test(name, () => {
      const { runAsUser, runAsUsername } = security(given);
      assert.deepEqual({ runAsUser, runAsUsername }, { runAsUser: undefined, runAsUsername: undefined, ...want });
    });
  }

  const where = '(pod: "web_default(uid-1)", container: app)';
  const refused: { name: string; given: Given; want: string }[] = [
    {
      name: "root by the spec",
      given: { own: { runAsNonRoot: true, runAsUser: 0 } },
      want: `container's runAsUser breaks non-root policy ${where}`,
    },
    {
      name: "root by the image",
      given: { own: { runAsNonRoot: true }, image: { uid: 0, username: "" } },
      want: `container has runAsNonRoot and image will run as root ${where}`,
    },
    {
      name: "root because the image says nothing",
      given: { shared: { runAsNonRoot: true } },
      want: `container has runAsNonRoot and image will run as root ${where}`,
    },
    {
      name: "a name, which may be root's",
      given: { shared: { runAsNonRoot: true }, image: { username: "www" } },
      want: `container has runAsNonRoot and image has non-numeric user (www), cannot verify user is non-root ${where}`,
    },
  ];
  for (const { name, given, want } of refused) {
    test(`runAsNonRoot refuses ${name}`, () => {
      assert.throws(
        () => security(given),
        (error: Error) => {
          assert.ok(error instanceof ConfigError);
          assert.equal(error.message, want);
          return true;
        },
      );
    });
  }
});

describe("groups", () => {
  test("the container's primary group before the pod's", () => {
    assert.equal(security({ own: { runAsGroup: 1 }, shared: { runAsGroup: 2 } }).runAsGroup, 1);
    assert.equal(security({ shared: { runAsGroup: 2 } }).runAsGroup, 2);
    assert.equal("runAsGroup" in security({}), false);
  });

  test("the file system's group first, then the supplemental ones", () => {
    const shared = { fsGroup: 5, supplementalGroups: [3, 4] };
    const of = pod().container("app").with({ securityContext: shared }).build();
    assert.deepEqual(groupsOf(of), { supplementalGroups: [5, 3, 4] });
    assert.deepEqual(security({ shared }).supplementalGroups, [5, 3, 4]);
  });

  test("those of volumes come last, and only if the pod does not have them", () => {
    const shared = { supplementalGroups: [3, 4] };
    const of = pod().container("app").with({ securityContext: shared }).build();
    assert.deepEqual(groupsOf(of, [4, 9]), { supplementalGroups: [3, 4, 9] });
  });

  test("the image's own groups count unless the policy is strict", () => {
    assert.equal("supplementalGroupsPolicy" in security({ shared: { supplementalGroupsPolicy: "Merge" } }), false);
    const { supplementalGroupsPolicy } = security({ shared: { supplementalGroupsPolicy: "Strict" } });
    assert.equal(supplementalGroupsPolicy, "Strict");
  });
});

describe("what a container must not see or change", () => {
  test("is always named, with what this machine has besides", () => {
    const { maskedPaths, readonlyPaths } = security({});
    assert.deepEqual(maskedPaths, [...MASKED_PATHS, THROTTLE]);
    assert.deepEqual(readonlyPaths, READONLY_PATHS);
    for (const path of ["/proc/kcore", "/proc/keys", "/proc/interrupts", "/sys/firmware"]) {
      assert.ok(maskedPaths.includes(path), path);
    }
  });

  test("is named for a privileged container too: the runtime takes it off", () => {
    assert.deepEqual(security({ own: { privileged: true } }).maskedPaths, [...MASKED_PATHS, THROTTLE]);
  });

  test("is nothing where procMount is Unmasked", () => {
    const { maskedPaths, readonlyPaths } = security({ own: { procMount: "Unmasked" } });
    assert.deepEqual([maskedPaths, readonlyPaths], [[], []]);
  });
});

describe("privileges", () => {
  const off = {
    privileged: false,
    readonlyRootfs: false,
    noNewPrivs: false,
    addCapabilities: [],
    dropCapabilities: [],
  };
  const cases: [string, SecurityContext | undefined, object][] = [
    ["nothing asked", undefined, {}],
    ["privileged", { privileged: true }, { privileged: true }],
    ["a read-only root", { readOnlyRootFilesystem: true }, { readonlyRootfs: true }],
    ["no escalation", { allowPrivilegeEscalation: false }, { noNewPrivs: true }],
    ["escalation allowed", { allowPrivilegeEscalation: true }, {}],
    [
      "capabilities",
      { capabilities: { add: ["NET_ADMIN"], drop: ["ALL"] } },
      { addCapabilities: ["NET_ADMIN"], dropCapabilities: ["ALL"] },
    ],
  ];
  for (const [name, own, want] of cases) {
    test(name, () => {
      const got = security(own === undefined ? {} : { own });
      const { privileged, readonlyRootfs, noNewPrivs, addCapabilities, dropCapabilities } = got;
      const picked = { privileged, readonlyRootfs, noNewPrivs, addCapabilities, dropCapabilities };
      assert.deepEqual(picked, { ...off, ...want });
    });
  }
});

describe("profiles", () => {
  const seccomp: [string, Given, object][] = [
    ["none asked: none applied", {}, { type: "unconfined" }],
    ["the runtime's own", { own: { seccompProfile: { type: "RuntimeDefault" } } }, { type: "runtimeDefault" }],
    ["the pod's", { shared: { seccompProfile: { type: "RuntimeDefault" } } }, { type: "runtimeDefault" }],
    [
      "the container's before the pod's",
      { own: { seccompProfile: { type: "Unconfined" } }, shared: { seccompProfile: { type: "RuntimeDefault" } } },
      { type: "unconfined" },
    ],
    [
      "a file below the node's seccomp directory",
      { own: { seccompProfile: { type: "Localhost", localhostProfile: "audit.json" } } },
      { type: "localhost", localhostRef: "/root/seccomp/audit.json" },
    ],
  ];
  for (const [name, given, want] of seccomp)
    test(`seccomp: ${name}`, () => assert.deepEqual(security(given).seccomp, want));

  const local = { type: "Localhost", localhostProfile: "web" };
  const apparmor: [string, Given, object | undefined][] = [
    ["none asked: the runtime decides", {}, undefined],
    ["the container's", { own: { appArmorProfile: local } }, { type: "localhost", localhostRef: "web" }],
    ["the pod's", { shared: { appArmorProfile: { type: "RuntimeDefault" } } }, { type: "runtimeDefault" }],
    [
      "the container's before the annotation",
      { own: { appArmorProfile: { type: "Unconfined" } }, annotation: "runtime/default" },
      { type: "unconfined" },
    ],
    [
      "the annotation before the pod's",
      { annotation: "localhost/web", shared: { appArmorProfile: { type: "Unconfined" } } },
      { type: "localhost", localhostRef: "web" },
    ],
    ["the annotation: runtime/default", { annotation: "runtime/default" }, { type: "runtimeDefault" }],
    ["the annotation: unconfined", { annotation: "unconfined" }, { type: "unconfined" }],
    ["an empty annotation says nothing", { annotation: "" }, undefined],
  ];
  for (const [name, given, want] of apparmor) {
    test(`AppArmor: ${name}`, () => assert.deepEqual(security(given).apparmor, want));
  }

  test("AppArmor: an annotation that means nothing is a configuration error", () => {
    assert.throws(() => security({ annotation: "strict" }), ConfigError);
  });

  test("SELinux: the container's before the pod's", () => {
    const [own, shared] = [{ level: "s0:c1" }, { level: "s0:c2" }];
    assert.deepEqual(security({ own: { seLinuxOptions: own }, shared: { seLinuxOptions: shared } }).selinux, own);
    assert.deepEqual(security({ shared: { seLinuxOptions: shared } }).selinux, shared);
    assert.equal("selinux" in security({}), false);
  });
});

describe("what comes from elsewhere", () => {
  const of = pod("web").container("app").build();
  const container = of.spec.containers[0] ?? { name: "" };
  const facts = { image: root, seccompRoot: "/root/seccomp", seccompDefault: false, extraMaskedPaths: [] };

  test("the node's default profile holds only for containers that name none", () => {
    const node = { ...facts, seccompDefault: true };
    assert.deepEqual(containerSecurity(of, container, node).seccomp, { type: "runtimeDefault" });
    const named = { ...container, securityContext: { seccompProfile: { type: "Unconfined" } } };
    assert.deepEqual(containerSecurity(of, named, node).seccomp, { type: "unconfined" });
  });

  test("the processes of a target are joined only where each container has its own", () => {
    const joined = containerSecurity(of, container, { ...facts, targetId: "x" }).namespaces;
    assert.deepEqual([joined.pid, joined.targetId], ["target", "x"]);
    const shared = { ...of, spec: { ...of.spec, shareProcessNamespace: true } };
    assert.equal(containerSecurity(shared, container, { ...facts, targetId: "x" }).namespaces.pid, "pod");
  });
});
