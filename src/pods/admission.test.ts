import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { pod } from "../../test/support/pods.ts";
import type { ContainerPort, Pod, PodSpec } from "../model/generated/types.ts";
import { type AdmissionFacts, admit } from "./admission.ts";

const room: AdmissionFacts = { others: [], maxPods: 110, allowedUnsafeSysctls: [] };

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

test("a plain pod may run", () => assert.equal(admit(asked({}), room), undefined));

describe("what this version cannot do", () => {
  test("is refused with each field's name, before all else", () => {
    const of = pod("web")
      .container("app", { volumeDevices: [{ name: "disk", devicePath: "/dev/x" }] })
      .with({ runtimeClassName: "kata", securityContext: { sysctls: [{ name: "kernel.hostname", value: "x" }] } })
      .build();
    const rejection = admit(of, room);
    assert.equal(rejection?.reason, "PodFeatureUnsupported");
    assert.match(rejection?.message ?? "", /spec\.containers\[0\]\.volumeDevices: .*; spec\.runtimeClassName: /);
  });

  test("does not matter where the pod runs well without it", () => {
    const of = pod("web")
      .container("app", { livenessProbe: { httpGet: { port: 80 } } })
      .build();
    assert.equal(admit(of, room), undefined);
  });
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
      const rejection = admit(of, { ...room, allowedUnsafeSysctls: allowed });
      assert.deepEqual(rejection, want === undefined ? undefined : { reason: "SysctlForbidden", message: want });
    });
  }
});

describe("how many", () => {
  const others = [pod("a").container("app").build(), pod("b").container("app").build()];
  const fixedPod = asked({});
  const asStatic: Pod = {
    ...fixedPod,
    metadata: { ...fixedPod.metadata, annotations: { "kubernetes.io/config.source": "file" } },
  };
  const message = "Node didn't have enough resource: pods, requested: 1, used: 2, capacity: 2";
  const cases: { name: string; pod: Pod; maxPods: number; want: object | undefined }[] = [
    { name: "room for one more", pod: asked({}), maxPods: 3, want: undefined },
    { name: "full", pod: asked({}), maxPods: 2, want: { reason: "OutOfpods", message } },
    { name: "full, but the pod is the node's own", pod: asStatic, maxPods: 2, want: undefined },
    { name: "0 is no limit", pod: asked({}), maxPods: 0, want: undefined },
  ];
  for (const { name, pod: of, maxPods, want } of cases) {
    test(name, () => assert.deepEqual(admit(of, { ...room, others, maxPods }), want));
  }
});

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
      const rejection = admit(onPort("web", wanted), { ...room, others: [onPort("other", taken)] });
      assert.equal(rejection?.reason, clashes ? "NodePorts" : undefined);
    });
  }

  test("says which port, and who has it", () => {
    const others = [onPort("free", {}), onPort("other", { hostPort: 80 })];
    assert.equal(
      admit(onPort("web", { hostPort: 80 }), { ...room, others })?.message,
      "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports (TCP 80 is held by other)",
    );
  });
});
