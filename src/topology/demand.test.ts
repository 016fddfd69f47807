import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { pod } from "../../test/support/pods.ts";
import type { Container, Pod } from "../model/generated/types.ts";
import { Demand } from "./demand.ts";

function of(more: Record<string, string> = {}): Pick<Container, "resources"> {
  const limits = { cpu: "2", memory: "1Gi", ...more };
  return { resources: { limits, requests: limits } };
}

describe("the memory of a pod", () => {
  test("has no kind that only initialization needs, as in Kubernetes", () => {
    const web = pod("web")
      .init("setup", of({ memory: "2Gi", "hugepages-2Mi": "64Mi" }))
      .container("app", of())
      .build();
    assert.deepEqual([...new Demand({ managesPodLevel: false }).podMemory(web)], [["memory", 2 * 2 ** 30]]);
  });
});

describe("the CPUs of a pod", () => {
  const sidecar = { restartPolicy: "Always" };
  const cpus = (cpu: string) => of({ cpu });
  const cases = [
    { name: "are those of sidecars and containers", of: pod().init("proxy", { ...cpus("2"), ...sidecar }), want: 3 },
    { name: "are those of the largest init container", of: pod().init("a", cpus("5")).init("b", cpus("4")), want: 5 },
    {
      name: "are those of an init container beside the sidecars before it",
      of: pod()
        .init("proxy", { ...cpus("2"), ...sidecar })
        .init("setup", cpus("4")),
      want: 6,
    },
    {
      name: "are not those of an init container beside the sidecars after it",
      of: pod()
        .init("setup", cpus("4"))
        .init("proxy", { ...cpus("2"), ...sidecar }),
      want: 4,
    },
  ];
  for (const { name, of: made, want } of cases) {
    test(name, () =>
      assert.equal(new Demand({ managesPodLevel: false }).podCpus(made.container("app", cpus("1")).build()), want),
    );
  }
});

describe("pods with pod-level resources are left alone without the gate", () => {
  for (const name of ["cpu", "memory", "hugepages-2Mi"]) {
    for (const side of ["requests", "limits"]) {
      test(`if they are ${side} of ${name}`, () => {
        const web = pod("web")
          .container("app", of())
          .with({ resources: { [side]: { [name]: "2" } } })
          .build();
        const [app = assert.fail()] = web.spec.containers;
        const [off, on] = [new Demand({ managesPodLevel: false }), new Demand({ managesPodLevel: true })];
        assert.deepEqual([off.cpus(web, app), off.podCpus(web), [...off.podMemory(web)]], [0, 0, []]);
        assert.deepEqual([off.isPodLevel(web), on.isPodLevel(web)], [false, true]);
      });
    }
  }

  test("not if they are of something else", () => {
    const web = pod("web")
      .container("app", of())
      .with({ resources: { limits: { "example.com/card": "1" } } })
      .build();
    assert.equal(new Demand({ managesPodLevel: false }).podCpus(web), 2);
  });
});

describe("a pod with pod-level resources", () => {
  const demand = new Demand({ managesPodLevel: true });
  const level = (amounts: Record<string, string>, container: Pick<Container, "resources">): Pod =>
    pod("level")
      .container("app", container)
      .with({ resources: of(amounts).resources })
      .build();

  test("does not have kinds of memory of which it asks for nothing", () => {
    const web = level({ "hugepages-2Mi": "0" }, {});
    assert.deepEqual([...demand.podMemory(web)], [["memory", 2 ** 30]]);
  });

  const amounts = { cpu: "1", memory: "1Gi" };
  const shared = {
    "requests without limits": { requests: amounts },
    "limits without requests": { limits: amounts },
    "more CPU as a limit": { requests: amounts, limits: { ...amounts, cpu: "2" } },
    "more memory as a limit": { requests: amounts, limits: { ...amounts, memory: "2Gi" } },
    "no memory": { requests: { cpu: "1" }, limits: { cpu: "1" } },
  };
  for (const [name, resources] of Object.entries(shared)) {
    test(`has a container that shares if it has ${name}`, () => {
      const web = level({}, { resources });
      const [app = assert.fail()] = web.spec.containers;
      assert.deepEqual([demand.cpus(web, app), [...demand.memory(web, app)]], [0, []]);
    });
  }

  test("has a container that shares if it asks for nothing of a resource", () => {
    const [app = { name: "" }, web] = ((built: Pod) => [built.spec.containers[0], built] as const)(
      level({}, of({ memory: "0" })),
    );
    assert.deepEqual([demand.cpus(web, app), [...demand.memory(web, app)]], [0, []]);
  });
});
