import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ADMISSION_NODE } from "../../../test/support/admission-node.ts";
import { pod } from "../../../test/support/pods.ts";
import type { ContainerPort, NodeSelectorTerm, Pod, PodSpec } from "../../model/generated/types.ts";
import { type AdmissionNode, admit, type Rejection } from "./admission.ts";

const node: AdmissionNode = {
  ...ADMISSION_NODE,
  labels: { zone: "a", cores: "8" },
  kernel: "6.1.0-13-amd64",
  allocatable: { cpu: "4", memory: "8Gi", "ephemeral-storage": "10Gi", pods: "110" },
};

function rejection(of: Pod, facts: Partial<AdmissionNode> = {}, others: readonly Pod[] = []): Rejection | undefined {
  const outcome = admit(of, { others, node: { ...node, ...facts } });
  return outcome.kind === "rejected" ? outcome.rejection : undefined;
}

function asked(spec: Partial<PodSpec>): Pod {
  return pod("web").container("app").with(spec).build();
}

function sysctl(name: string, spec: Partial<PodSpec> = {}): Pod {
  return asked({ ...spec, securityContext: { sysctls: [{ name, value: "1" }] } });
}

function onPort(name: string, port: Partial<ContainerPort>): Pod {
  return pod(name)
    .container("app", { ports: [{ containerPort: 80, ...port }] })
    .build();
}

test("a plain pod may run", () => assert.deepEqual(admit(asked({}), { others: [], node }), { kind: "admitted" }));

test("resources of a pod as a whole need their gate", () => {
  const whole = asked({ resources: { limits: { memory: "1Gi" } } });
  const why = { reason: "PodLevelResourcesNotSupported", message: "PodLevelResources feature gate is disabled" };
  assert.deepEqual(rejection(whole, { hasPodLevelResources: false }), why);
  assert.equal(rejection(whole, { hasPodLevelResources: true }), undefined);
  assert.equal(rejection(asked({ resources: {} }), { hasPodLevelResources: false }), undefined);
  for (const name of ["cpu", "memory", "hugepages-2Mi"]) {
    const requests = asked({ resources: { requests: { [name]: "0" } } });
    assert.deepEqual(rejection(requests, { hasPodLevelResources: false }), why, name);
  }
  const other = asked({ resources: { requests: { "example.com/x": "0" } } });
  assert.equal(rejection(other, { hasPodLevelResources: false }), undefined);
});

test("tolerations compare numbers only with their gate", () => {
  const taints = [{ key: "level", value: "5", effect: "NoExecute" }];
  const reasons = (comparesNumbers: boolean, operator: string, ...values: string[]) =>
    values.map((value) => {
      const tolerations = [{ key: "level", operator, value, effect: "NoExecute" }];
      return rejection(asked({ tolerations }), { taints, comparesNumbers })?.reason ?? "";
    });
  const not = "TaintToleration";
  assert.deepEqual(reasons(true, "Lt", "6", "5", "-7", "06"), ["", not, not, not]);
  assert.deepEqual(reasons(true, "Gt", "4", "5", "x", "99999999999999999999"), ["", not, not, not]);
  assert.deepEqual(reasons(false, "Lt", "6", "5"), [not, not]);
  assert.deepEqual(reasons(true, "Equal", "5", "6"), ["", not]);
});

describe("a pod that needs a feature which the node does not declare", () => {
  const restartPolicyRules = [{ action: "RestartAllContainers", exitCodes: { operator: "In", values: [1] } }];
  const restarting = pod("web").container("app", { restartPolicyRules }).build();
  const mixed = [{ action: "Restart", exitCodes: { operator: "In", values: [2] } }, ...restartPolicyRules];
  const several = pod("web").container("app").container("log", { restartPolicyRules: mixed }).build();
  const shared = asked({ hostNetwork: true, hostUsers: false });
  const [restarts, users] = ["RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport"];
  const cases: [string, Pod, readonly string[] | undefined, string | undefined][] = [
    ["to restart all containers is rejected", restarting, [], restarts],
    ["of the host's network in a user namespace is rejected", shared, [restarts], users],
    ["is admitted where it is declared", restarting, [restarts], undefined],
    [
      "to restart all containers for one of several rules of one of several containers is rejected",
      several,
      [],
      restarts,
    ],
    ["of the host's network alone is admitted", asked({ hostNetwork: true }), [], undefined],
    ["of a user namespace alone is admitted", asked({ hostUsers: false }), [], undefined],
    ["is admitted where nothing is declared at all", shared, undefined, undefined],
  ];
  for (const [name, of, declaredFeatures, missing] of cases) {
    test(name, () => {
      const message = `Pod requires node features that are not available: ${missing}`;
      const want = missing === undefined ? undefined : { reason: "PodFeatureUnsupported", message };
      assert.deepEqual(rejection(of, { declaredFeatures }), want);
    });
  }
});

test("no pod is admitted while the node shuts down, not even a critical one", () => {
  for (const priority of [0, 2_000_000_000]) {
    assert.deepEqual(rejection(asked({ priority }), { isShuttingDown: true }), {
      reason: "NodeShutdown",
      message: "Pod was rejected as the node is shutting down.",
    });
  }
});

describe("sysctls", () => {
  const cases: { name: string; pod: Pod; allowed?: string[]; want: string | undefined }[] = [
    { name: "a safe one", pod: sysctl("kernel.shm_rmid_forced"), want: undefined },
    { name: "a safe one written with slashes", pod: sysctl("net/ipv4/tcp_syncookies"), want: undefined },
    {
      name: "one that is not safe",
      pod: sysctl("kernel.msgmax"),
      want: 'forbidden sysctl: "kernel.msgmax" not allowlisted',
    },
    { name: "one that the node allows", pod: sysctl("kernel.msgmax"), allowed: ["kernel.msgmax"], want: undefined },
    {
      name: "one of a family that the node allows",
      pod: sysctl("net.core.somaxconn"),
      allowed: ["net.core.*"],
      want: undefined,
    },
    {
      name: "one whose name only begins like an allowed one",
      pod: sysctl("kernel.msgmaxx"),
      allowed: ["kernel.msgmax"],
      want: 'forbidden sysctl: "kernel.msgmaxx" not allowlisted',
    },
    {
      name: "a network one on the host's network, where it would be the node's",
      pod: sysctl("net.ipv4.tcp_syncookies", { hostNetwork: true }),
      want: 'forbidden sysctl: "net.ipv4.tcp_syncookies" not allowed with host Net enabled',
    },
    {
      name: "an IPC one with the host's IPC",
      pod: sysctl("kernel.shm_rmid_forced", { hostIPC: true }),
      want: 'forbidden sysctl: "kernel.shm_rmid_forced" not allowed with host IPC enabled',
    },
    {
      name: "a network one with the host's IPC",
      pod: sysctl("net.ipv4.tcp_syncookies", { hostIPC: true }),
      want: undefined,
    },
    {
      name: "an IPC one on the host's network",
      pod: sysctl("kernel.shm_rmid_forced", { hostNetwork: true }),
      want: undefined,
    },
  ];
  for (const { name, pod: of, allowed = [], want } of cases) {
    test(`${name}: ${want === undefined ? "may" : "may not"}`, () => {
      const found = rejection(of, { allowedUnsafeSysctls: allowed });
      assert.deepEqual(found, want === undefined ? undefined : { reason: "SysctlForbidden", message: want });
    });
  }
});

test("a sysctl is safe only from the kernel on that has it in a namespace", () => {
  assert.equal(rejection(sysctl("net.ipv4.tcp_rmem"), { kernel: "4.14.9" })?.reason, "SysctlForbidden");
  for (const kernel of ["4.15.0", "4.16", "5.1.0", "10.0"]) {
    assert.equal(rejection(sysctl("net.ipv4.tcp_rmem"), { kernel }), undefined, kernel);
  }
  assert.equal(rejection(sysctl("net.ipv4.tcp_rmem"), { kernel: "3.20.0" })?.reason, "SysctlForbidden");
  assert.equal(rejection(sysctl("net.ipv4.tcp_rmem"), { kernel: "unknown" }), undefined);
});

describe("an IPC sysctl that the node allows would be the node's with the host's IPC", () => {
  for (const name of ["kernel.shmmax", "kernel.msgmax", "kernel.sem", "fs.mqueue.msg_max"]) {
    test(name, () => {
      const allowedUnsafeSysctls = [name];
      const message = `forbidden sysctl: "${name}" not allowed with host IPC enabled`;
      const found = rejection(sysctl(name, { hostIPC: true }), { allowedUnsafeSysctls });
      assert.deepEqual(found, { reason: "SysctlForbidden", message });
      assert.equal(rejection(sysctl(name), { allowedUnsafeSysctls }), undefined);
    });
  }
});

describe("room", () => {
  const needs = (requests: Record<string, string>, name = "web"): Pod =>
    pod(name).container("app", { resources: { requests } }).build();
  const others = [needs({ cpu: "3", memory: "1Gi" }, "a"), needs({}, "b")];
  const CLASS = "deviceclass.resource.kubernetes.io/gpu";
  /** A plugin had devices of it before a driver took over. */
  const had = { ...node.allocatable, "example.com/x": "0" };
  const claimed = (of: Pod, containerName = "app"): Pod => {
    const requestMappings = ["example.com/x", CLASS].map((resourceName) => ({
      containerName,
      resourceName,
      requestName: "r",
    }));
    return { ...of, status: { extendedResourceClaimStatus: { resourceClaimName: "c", requestMappings } } };
  };
  const cases: [string, Pod, Partial<AdmissionNode>, string | undefined][] = [
    ["enough", needs({ cpu: "1", memory: "7Gi" }), {}, undefined],
    [
      "one more pod than there may be",
      asked({}),
      { allocatable: { pods: "2" } },
      "pods, requested: 1, used: 2, capacity: 2",
    ],
    ["no limit of their number", asked({}), { allocatable: {} }, undefined],
    ["cpu, in thousandths", needs({ cpu: "1001m" }), {}, "cpu, requested: 1001, used: 3000, capacity: 4000"],
    [
      "memory, in bytes",
      needs({ memory: "7169Mi" }),
      {},
      `memory, requested: ${7169 * 2 ** 20}, used: ${2 ** 30}, capacity: ${2 ** 33}`,
    ],
    [
      "local storage",
      needs({ "ephemeral-storage": "11Gi" }),
      {},
      `ephemeral-storage, requested: ${11 * 2 ** 30}, used: 0, capacity: ${10 * 2 ** 30}`,
    ],
    [
      "huge pages",
      needs({ "hugepages-2Mi": "4Mi" }),
      { allocatable: { ...node.allocatable, "hugepages-2Mi": "2Mi" } },
      `hugepages-2Mi, requested: ${2 ** 22}, used: 0, capacity: ${2 ** 21}`,
    ],
    [
      "huge pages of a size that the node does not have",
      needs({ "hugepages-1Gi": "1Gi" }),
      {},
      `hugepages-1Gi, requested: ${2 ** 30}, used: 0, capacity: 0`,
    ],
    ["huge pages that are not asked for", needs({ "hugepages-1Gi": "0" }), {}, undefined],
    [
      "devices of a class that nobody has claimed",
      needs({ [CLASS]: "1" }),
      {},
      `${CLASS}, requested: 1, used: 0, capacity: 0`,
    ],
    [
      "devices that are claimed",
      claimed(needs({ "example.com/x": "1", [CLASS]: "1" })),
      { allocatable: had },
      undefined,
    ],
    [
      "devices that are claimed for another container",
      claimed(needs({ "example.com/x": "1" }), "other"),
      { allocatable: had },
      "example.com/x, requested: 1, used: 0, capacity: 0",
    ],
    [
      "CPUs beside devices that are claimed",
      claimed(needs({ "example.com/x": "1", cpu: "2" })),
      { allocatable: had },
      "cpu, requested: 2000, used: 3000, capacity: 4000",
    ],
    [
      "devices that nothing but a plugin can provide",
      claimed(needs({ "example.com/x": "1" })),
      { allocatable: had, claimsExtendedResources: false },
      "example.com/x, requested: 1, used: 0, capacity: 0",
    ],
    ["a resource that the node does not know is not asked for", needs({ "example.com/x": "1" }), {}, undefined],
    ["a pod that asks for nothing fits everywhere", asked({}), { allocatable: { cpu: "1" } }, undefined],
    ["overhead counts", asked({ overhead: { cpu: "2" } }), {}, "cpu, requested: 2000, used: 3000, capacity: 4000"],
  ];
  for (const [name, of, facts, want] of cases) {
    test(name, () => {
      const found = rejection(of, facts, others);
      const message = want && `Node didn't have enough resource: ${want}`;
      assert.equal(found?.message, message);
      if (want !== undefined) assert.equal(found?.reason, `OutOf${want.split(",")[0]}`);
    });
  }
});

describe("the node that it asks for", () => {
  const required = (...nodeSelectorTerms: NodeSelectorTerm[]) => ({
    affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } } },
  });
  const label = (key: string, operator: string, ...values: string[]) =>
    required({ matchExpressions: [{ key, operator, values }] });
  const name = (...values: string[]) =>
    required({}, { matchFields: [{ key: "metadata.name", operator: "In", values }] });
  const cases: [string, Partial<PodSpec>, string | undefined][] = [
    ["a label that it has", { nodeSelector: { zone: "a" } }, undefined],
    ["a label that it has otherwise", { nodeSelector: { zone: "b" } }, "NodeAffinity"],
    ["a label that it has not", { nodeSelector: { disk: "ssd" } }, "NodeAffinity"],
    ["In", label("zone", "In", "b", "a"), undefined],
    ["In others", label("zone", "In", "b"), "NodeAffinity"],
    ["NotIn", label("zone", "NotIn", "a"), "NodeAffinity"],
    ["NotIn of a label that it has not", label("disk", "NotIn", "ssd"), undefined],
    ["Exists", label("zone", "Exists"), undefined],
    ["Exists of a label that it has not", label("disk", "Exists"), "NodeAffinity"],
    ["DoesNotExist", label("zone", "DoesNotExist"), "NodeAffinity"],
    ["Gt", label("cores", "Gt", "7"), undefined],
    ["Gt the same", label("cores", "Gt", "8"), "NodeAffinity"],
    ["Lt", label("cores", "Lt", "9"), undefined],
    ["Lt of what is no number", label("zone", "Lt", "9"), "NodeAffinity"],
    ["an operator that does not exist", label("zone", "Like", "a"), "NodeAffinity"],
    ["its name", name("here"), undefined],
    ["another's name", name("there"), "NodeAffinity"],
    ["terms that say nothing match nothing", required({}), "NodeAffinity"],
    ["bound to it", { nodeName: "here" }, undefined],
    ["bound to another", { nodeName: "there" }, "NodeName"],
    ["its system", { os: { name: "linux" } }, undefined],
    ["another system", { os: { name: "windows" } }, "PodOSNotSupported"],
    ["a node of another system", { nodeSelector: { "kubernetes.io/os": "windows" } }, "NodeAffinity"],
    ["groups as ever", { securityContext: { supplementalGroupsPolicy: "Merge" } }, undefined],
    [
      "strict groups",
      { securityContext: { supplementalGroupsPolicy: "Strict" } },
      "SupplementalGroupsPolicyNotSupported",
    ],
    ["AppArmor's default", { securityContext: { appArmorProfile: { type: "RuntimeDefault" } } }, "AppArmor"],
    ["no AppArmor", { securityContext: { appArmorProfile: { type: "Unconfined" } } }, undefined],
  ];
  for (const [what, spec, want] of cases) {
    test(`${what}: ${want ?? "admitted"}`, () => assert.equal(rejection(asked(spec))?.reason, want));
  }

  test("a pod label of another system: PodOSSelectorNodeLabelDoesNotMatch, as in Kubernetes", () => {
    const labelled = (os: string): Pod => {
      const plain = asked({});
      return { ...plain, metadata: { ...plain.metadata, labels: { "kubernetes.io/os": os } } };
    };
    assert.equal(rejection(labelled("windows"))?.reason, "PodOSSelectorNodeLabelDoesNotMatch");
    assert.equal(rejection(labelled("linux")), undefined);
  });

  test("what the node can do is not refused", () => {
    const securityContext = { supplementalGroupsPolicy: "Strict", appArmorProfile: { type: "RuntimeDefault" } };
    assert.equal(rejection(asked({ securityContext }), { hasAppArmor: true, hasStrictGroups: true }), undefined);
    assert.equal(rejection(asked({ securityContext }), { hasAppArmor: true, hasStrictGroups: undefined }), undefined);
  });

  test("a container's profile counts, also by annotation, and only before the pod runs", () => {
    const own = pod("web")
      .container("app", { securityContext: { appArmorProfile: { type: "Localhost", localhostProfile: "x" } } })
      .build();
    assert.equal(rejection(own)?.message, "Cannot enforce AppArmor: AppArmor is not enabled on the host");
    assert.equal(rejection({ ...own, status: { phase: "Running" } }), undefined);
    const annotations = { "container.apparmor.security.beta.kubernetes.io/app": "localhost/x" };
    const plain = asked({});
    assert.equal(rejection({ ...plain, metadata: { ...plain.metadata, annotations } })?.reason, "AppArmor");
    for (const value of ["", "unconfined"]) {
      const off = { "container.apparmor.security.beta.kubernetes.io/app": value };
      assert.equal(rejection({ ...plain, metadata: { ...plain.metadata, annotations: off } }), undefined, value);
    }
    const beside = pod("web").container("log").container("app", own.spec.containers[0]).build();
    assert.equal(rejection(beside)?.reason, "AppArmor", "one of several containers is enough");
  });
});

describe("taints", () => {
  const taints = [{ key: "maintenance", value: "soon", effect: "NoExecute" }];
  const cases: [string, NonNullable<PodSpec["tolerations"]>, string | undefined][] = [
    ["none tolerated", [], "TaintToleration"],
    ["the very one", [{ key: "maintenance", value: "soon", effect: "NoExecute" }], undefined],
    ["another value", [{ key: "maintenance", value: "later" }], "TaintToleration"],
    ["any value", [{ key: "maintenance", operator: "Exists" }], undefined],
    ["another effect", [{ key: "maintenance", operator: "Exists", effect: "NoSchedule" }], "TaintToleration"],
    ["everything", [{ operator: "Exists" }], undefined],
  ];
  for (const [name, tolerations, want] of cases) {
    test(name, () => assert.equal(rejection(asked({ tolerations }), { taints })?.reason, want));
  }

  test("those that only keep new pods away are the scheduler's business; static pods are not asked", () => {
    assert.equal(rejection(asked({}), { taints: [{ key: "x", effect: "NoSchedule" }] }), undefined);
    assert.equal(rejection(asStatic(asked({})), { taints }), undefined);
  });
});

describe("a critical pod", () => {
  const sized = (name: string, cpu: string, more: { limit?: boolean; priority?: number } = {}): Pod => {
    const amounts = { cpu, memory: "1Mi" };
    const resources = { requests: amounts, ...(more.limit && { limits: amounts }) };
    const { priority } = more;
    return pod(name)
      .container("app", { resources })
      .with(priority === undefined ? {} : { priority })
      .build();
  };
  const idle = pod("idle").container("app").build();
  const small = { allocatable: { cpu: "4", memory: "8Gi", pods: "10" } };
  const victims = (of: Pod, others: readonly Pod[], facts: Partial<AdmissionNode> = small): string[] | string => {
    const outcome = admit(of, { others, node: { ...node, ...facts } });
    return outcome.kind === "preempts" ? outcome.victims.map(({ metadata }) => metadata.name ?? "") : outcome.kind;
  };
  const mine = (cpu: string): Pod => asStatic(sized("mine", cpu));
  const cases: [string, Pod, readonly Pod[], string[] | string][] = [
    ["that fits preempts nobody", mine("1"), [sized("a", "3")], "admitted"],
    ["preempts one that is not critical", mine("2"), [sized("a", "3")], ["a"]],
    [
      "preempts the smaller one where either would do",
      mine("1500m"),
      [sized("big", "2500m"), sized("near", "1")],
      ["near"],
    ],
    ["preempts as many as it needs", mine("4"), [sized("a", "1"), sized("b", "2")], ["b", "a"]],
    ["spares the guaranteed", mine("2"), [sized("a", "1500m", { limit: true }), sized("b", "2500m")], ["b"]],
    [
      "spares a guaranteed one that would do alone, where burstable ones do together",
      mine("2"),
      [sized("g", "2", { limit: true }), sized("a", "1"), sized("b", "1")],
      ["a", "b"],
    ],
    ["does not preempt pods that free nothing", mine("2"), [idle, sized("a", "3")], ["a"]],
    ["does not preempt another critical one", mine("2"), [asStatic(sized("a", "3"))], "rejected"],
    ["is rejected when even all of them would not do", mine("5"), [sized("a", "3")], "rejected"],
    [
      "is one by its priority",
      sized("mine", "2", { priority: 2_000_000_000 }),
      [sized("a", "3", { priority: 5 })],
      ["a"],
    ],
    [
      "any other pod preempts nobody",
      sized("mine", "2", { priority: 9 }),
      [sized("a", "3", { priority: 5 })],
      "rejected",
    ],
  ];
  for (const [name, of, others, want] of cases) test(name, () => assert.deepEqual(victims(of, others), want));

  const both = (name: string, [cpu, memory]: readonly [string, string], isGuaranteed = false): Pod => {
    const amounts = { cpu, memory };
    return pod(name)
      .container("app", { resources: { requests: amounts, ...(isGuaranteed && { limits: amounts }) } })
      .build();
  };
  const large = asStatic(both("mine", ["2", "4Gi"]));
  const tight = { allocatable: { cpu: "4", memory: "8Gi", pods: "10" } };
  const many: [string, readonly Pod[], string[]][] = [
    [
      "preempts until it has room of every resource",
      [both("cpus", ["2", "0"]), both("bytes", ["0", "6Gi"]), both("rest", ["2", "1Gi"])],
      ["rest", "bytes"],
    ],
    [
      "preempts what comes nearest to all that is missing, and of two that do the rest the one with less memory",
      [both("cpus", ["2", "1Gi"]), both("bytes", ["1m", "3Gi"]), both("all", ["1999m", "4Gi"])],
      ["all", "cpus"],
    ],
    [
      "preempts each pod once",
      [both("a", ["1", "2Gi"]), both("b", ["1", "2Gi"]), both("c", ["1", "2Gi"]), both("d", ["1", "2Gi"])],
      ["a", "b"],
    ],
    [
      "preempts no burstable pod beside a guaranteed one that is needed and enough",
      [idle, both("burstable", ["2", "3Gi"]), both("guaranteed", ["2", "5Gi"], true)],
      ["guaranteed"],
    ],
  ];
  for (const [name, others, want] of many) {
    test(name, () => assert.deepEqual(victims(large, others, tight), want));
  }

  test("preempts one pod when only their number is too high", () => {
    const others = [idle, sized("a", "1")];
    assert.deepEqual(victims(asStatic(asked({})), others, { allocatable: { pods: "2" } }), ["idle"]);
  });

  test("that is rejected for another reason preempts nobody, and that reason is reported", () => {
    const of = { ...mine("2"), spec: { ...mine("2").spec, nodeSelector: { zone: "b" } } };
    assert.equal(victims(of, [sized("a", "3")]), "rejected");
    assert.equal(rejection(of, small, [sized("a", "3")])?.reason, "NodeAffinity");
  });

  test("without victims gets UnexpectedAdmissionError, with what is missing, as in Kubernetes", () => {
    const { reason, message } = rejection(mine("2"), small, [asStatic(sized("a", "3")), sized("b", "500m")]) ?? {};
    assert.equal(reason, "UnexpectedAdmissionError");
    assert.equal(
      message,
      "Unexpected error while attempting to recover from admission failure: preemption: error finding a set of pods to preempt: no set of running pods found to reclaim resources: [(res: cpu, q: 1000), ]",
    );
  });
});

function asStatic(of: Pod): Pod {
  return { ...of, metadata: { ...of.metadata, annotations: { "kubernetes.io/config.source": "file" } } };
}

describe("host ports", () => {
  const cases: [string, Partial<ContainerPort>, Partial<ContainerPort>, boolean][] = [
    ["the same port", { hostPort: 80 }, { hostPort: 80 }, true],
    ["another port", { hostPort: 80 }, { hostPort: 81 }, false],
    ["no port on the host", {}, {}, false],
    ["another protocol", { hostPort: 53 }, { hostPort: 53, protocol: "UDP" }, false],
    ["TCP said and not said", { hostPort: 53 }, { hostPort: 53, protocol: "TCP" }, true],
    ["another address", { hostPort: 80, hostIP: "127.0.0.1" }, { hostPort: 80, hostIP: "192.0.2.1" }, false],
    ["the same address", { hostPort: 80, hostIP: "127.0.0.1" }, { hostPort: 80, hostIP: "127.0.0.1" }, true],
    ["every address and one of them", { hostPort: 80 }, { hostPort: 80, hostIP: "127.0.0.1" }, true],
    ["one of them and 0.0.0.0", { hostPort: 80, hostIP: "127.0.0.1" }, { hostPort: 80, hostIP: "0.0.0.0" }, true],
  ];
  for (const [name, wanted, taken, clashes] of cases) {
    test(`${name}: ${clashes ? "taken" : "free"}`, () => {
      const found = rejection(onPort("web", wanted), {}, [onPort("other", taken)]);
      assert.equal(found?.reason, clashes ? "NodePorts" : undefined);
    });
  }

  test("the message is the one of Kubernetes", () => {
    const others = [onPort("free", {}), onPort("other", { hostPort: 80 })];
    assert.equal(
      rejection(onPort("web", { hostPort: 80 }), {}, others)?.message,
      "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports",
    );
  });
});
