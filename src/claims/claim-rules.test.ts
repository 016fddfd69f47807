import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { pod } from "../../test/support/pods.ts";
import type { DeviceClaim } from "../adapters/kubeapi/index.ts";
import { usableClaim } from "./claim-object.ts";
import { isForRequest } from "./claim-record.ts";
import { containerRequests, podClaims } from "./pod-claims.ts";

describe("a device is for a request", () => {
  const cases = [
    { name: "of its name", requests: ["gpu"], request: "gpu", want: true },
    { name: "not of another", requests: ["gpu"], request: "nic", want: false },
    { name: "if the whole claim is asked for", requests: ["gpu"], request: "", want: true },
    { name: "if it is for all of them", requests: [], request: "gpu", want: true },
    { name: "of which it is a subrequest", requests: ["gpu/large"], request: "gpu", want: true },
    { name: "that is its subrequest", requests: ["gpu/large"], request: "gpu/large", want: true },
    { name: "not of another subrequest", requests: ["gpu/large"], request: "gpu/small", want: false },
    { name: "not of a subrequest if it is for no subrequest", requests: ["gpu"], request: "gpu/small", want: false },
    { name: "if one of several is", requests: ["nic", "gpu"], request: "gpu", want: true },
    { name: "if one of several is a subrequest of it", requests: ["nic", "gpu/large"], request: "gpu", want: true },
  ];
  for (const { name, requests, request, want } of cases) {
    test(name, () => assert.equal(isForRequest({ requests }, request), want));
  }
});

describe("a claim is usable by a pod of a group", () => {
  const web = pod("web")
    .container("app")
    .with({ schedulingGroup: { podGroupName: "workers" } })
    .build();
  const owner = { apiVersion: "scheduling.k8s.io/v1alpha2", kind: "PodGroup", name: "workers", uid: "g" };
  const reserved = { apiGroup: "scheduling.k8s.io", resource: "podgroups", name: "workers", uid: "g" };
  const NOT_OWNER = /neither Pod nor PodGroup workers is the owner/;
  const cases: readonly {
    name: string;
    owner?: Partial<typeof owner> & { controller?: boolean };
    reserved?: Partial<typeof reserved>;
    acceptsGroups?: boolean;
    want: RegExp | "usable";
  }[] = [
    { name: "that owns it and that it is reserved for", want: "usable" },
    { name: "but not where groups are off", acceptsGroups: false, want: /Pod is not owner/ },
    { name: "but not one that another kind of object owns", owner: { kind: "Pod" }, want: NOT_OWNER },
    { name: "but not one that another group owns", owner: { name: "others" }, want: NOT_OWNER },
    { name: "but not of another API", owner: { apiVersion: "example.com/v1" }, want: NOT_OWNER },
    { name: "but not one that it does not control", owner: { controller: false }, want: NOT_OWNER },
    { name: "but not reserved for another group", reserved: { name: "others" }, want: /is not allowed to use/ },
    { name: "but not reserved for a pod of that name", reserved: { resource: "pods" }, want: /is not allowed to use/ },
    { name: "but not reserved by another API", reserved: { apiGroup: "example.com" }, want: /is not allowed to use/ },
  ];
  for (const { name, want, acceptsGroups = true, ...more } of cases) {
    test(name, () => {
      const claim: DeviceClaim = {
        metadata: {
          name: "gpu",
          namespace: "default",
          uid: "c",
          ownerReferences: [{ ...owner, controller: true, ...more.owner }],
        },
        status: {
          allocation: { devices: { results: [{ driver: "gpu.example.com" }] } },
          reservedFor: [{ ...reserved, ...more.reserved }],
        },
      };
      const check = () => usableClaim(web, claim, { isGenerated: true, acceptsGroups });
      if (want === "usable") assert.deepEqual([...check().drivers.keys()], ["gpu.example.com"]);
      else assert.throws(check, want);
    });
  }
});

describe("the claims of a pod", () => {
  const ON = { hasExtendedResources: true };
  const CLASS = "deviceclass.resource.kubernetes.io/gpu";
  const requestMappings = ["example.com/gpu", CLASS, "kubernetes.io/gpu", "cpu"].map((resourceName) => ({
    containerName: "app",
    resourceName,
    requestName: `for ${resourceName}`,
  }));
  const extended = (requests: Readonly<Record<string, string>>) => ({
    ...pod("web").container("app", { resources: { requests } }).build(),
    status: { extendedResourceClaimStatus: { resourceClaimName: "ext", requestMappings } },
  });
  const asked = { "example.com/gpu": "1", [CLASS]: "1", "kubernetes.io/gpu": "1", cpu: "1" };
  const [app = assert.fail()] = extended(asked).spec.containers;

  test("have one for extended resources, by the name of the resource or of its class of devices", () => {
    const found = containerRequests(extended(asked), app, ON).get("ext");
    assert.deepEqual(found, ["for example.com/gpu", `for ${CLASS}`]);
  });

  test("have none for extended resources while their gate is off", () => {
    const off = { hasExtendedResources: false };
    assert.deepEqual(podClaims(extended(asked), off), []);
    assert.deepEqual([...containerRequests(extended(asked), app, off)], []);
  });

  test("are without those of templates that need no object", () => {
    const web = {
      ...pod("web")
        .container("app", { resources: { claims: [{ name: "gpu" }] } })
        .with({ resourceClaims: [{ name: "gpu", resourceClaimTemplateName: "t" }] })
        .build(),
      status: { resourceClaimStatuses: [{ name: "gpu" }] },
    };
    const [first = assert.fail()] = web.spec.containers;
    assert.deepEqual([podClaims(web, ON), [...containerRequests(web, first, ON)]], [[], []]);
  });

  test("cannot be of a kind that the agent does not know", () => {
    const web = pod("web")
      .container("app")
      .with({ resourceClaims: [{ name: "gpu" }] })
      .build();
    assert.throws(() => podClaims(web, ON), /spec.resourceClaim "gpu": none of the supported fields are set/);
  });
});
