/** Resource claims on a real API server, a real containerd with CDI, and a driver that is a process of its own. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, afterEach, before, describe, test } from "node:test";
import type { Pod } from "../../src/model/generated/types.ts";
import type { Program } from "../integration/support/program.ts";
import { until } from "../integration/support/until.ts";
import { ClusterSite, FOREVER, skipWithoutCluster } from "../support/cluster-site.ts";
import { TEST_IMAGES } from "../support/containerd.ts";
import { DraProcess } from "../support/dra-process.ts";

skipWithoutCluster();

const binDir = process.env["CONTAINERD2_BIN_DIR"] ?? "";
const DRIVER = "gpu.example.com";

describe("resource claims", { skip: binDir === "" && "CONTAINERD2_BIN_DIR names no containerd with CDI" }, () => {
  let site: ClusterSite;
  let agent: Program;
  let driver: DraProcess;
  const asked = (pattern: RegExp): number => driver.asked(pattern);

  before(async () => {
    site = await ClusterSite.start({ controllers: true }, { binDir });
    agent = await site.join();
    await site.nodeReady();
    site.apply({ apiVersion: "resource.k8s.io/v1", kind: "DeviceClass", metadata: { name: "gpu" }, spec: {} });
    driver = new DraProcess(DRIVER, { dir: site.dir, root: site.root, cdiDir: join(site.containerd.dir, "cdi") });
    await driver.register();
  });
  after(async () => {
    await driver?.end("SIGKILL");
    await site?.close();
  });
  afterEach(async () => {
    driver.behave({});
    if (driver.isOver) driver.start();
    await site.clear();
    site.kubectl("delete", "resourceclaims", "--all", "--wait=false");
  });

  const spec = {
    devices: { requests: ["first", "second"].map((name) => ({ name, exactly: { deviceClassName: "gpu" } })) },
  };
  const claim = (name: string): void =>
    site.apply({ apiVersion: "resource.k8s.io/v1", kind: "ResourceClaim", metadata: { name }, spec });
  /** Does the scheduler's work: allocates devices of the driver and reserves the claim for pods. */
  const allocate = (name: string, ...pods: readonly Pod[]): void => {
    const results = ["first", "second"].map((request) => ({
      request,
      driver: DRIVER,
      pool: "pool",
      device: `dev-${request}`,
    }));
    const reservedFor = pods.map(({ metadata }) => ({ resource: "pods", name: metadata.name, uid: metadata.uid }));
    const patch = JSON.stringify({ status: { allocation: { devices: { results } }, reservedFor } });
    site.kubectl("patch", "resourceclaim", name, "--subresource=status", "--type=merge", "-p", patch);
  };
  const container = (name: string, claims: readonly object[]): object => ({
    name,
    image: TEST_IMAGES.busybox,
    imagePullPolicy: "Never",
    command: ["/bin/sh", "-c", `env | grep ^CLAIM | sort; ls /dev | grep ^claim; echo end; ${FOREVER[2]}`],
    resources: { claims },
  });
  const apply = (name: string, claims: readonly string[], containers = [container("main", [{ name: "c0" }])]): Pod => {
    const resourceClaims = claims.map((resourceClaimName, at) => ({ name: `c${at}`, resourceClaimName }));
    site.apply(site.bound(name, { resourceClaims, containers }));
    const pod = site.pod(name);
    assert.ok(pod);
    return pod;
  };
  const uidOf = (name: string): string => site.get<{ metadata: { uid: string } }>("resourceclaim", name).metadata.uid;
  const said = (pod: Pod, name: string): Promise<string> =>
    until("its words", () => /end\n/.test(site.log(pod, name)) && site.log(pod, name));
  const event = (name: string, words: RegExp): Promise<unknown> =>
    until(`event ${words}`, () =>
      site
        .get<{ items: { involvedObject: { name: string }; reason: string; message: string }[] }>("events")
        .items.find(
          (found) =>
            found.involvedObject.name === name &&
            found.reason === "FailedPrepareDynamicResources" &&
            words.test(found.message),
        ),
    );
  const state = (): string => readFileSync(join(site.root, "dra_manager_state"), "utf8");

  test("containers get the devices of exactly the claims and requests that they name", async () => {
    claim("one");
    const pod = apply(
      "web",
      ["one"],
      [
        container("main", [{ name: "c0" }]),
        container("half", [{ name: "c0", request: "second" }]),
        container("none", []),
      ],
    );
    await event("web", /pod web \(.*\) is not allowed to use ResourceClaim one/);
    allocate("one", pod);
    await site.podReady("web");
    const uid = uidOf("one");
    assert.equal(
      await said(pod, "main"),
      `CLAIM_ONE_FIRST=${uid}\nCLAIM_ONE_SECOND=${uid}\nclaim-one-first\nclaim-one-second\nend\n`,
    );
    assert.equal(await said(pod, "half"), `CLAIM_ONE_SECOND=${uid}\nclaim-one-second\nend\n`);
    assert.equal(await said(pod, "none"), "end\n");
    await site.removePods("web");
    assert.equal(asked(/^unprepare ok one$/), 1);
    assert.ok(!state().includes(uid));
  });

  test("a claim of two pods is prepared once, outlives the first, and the agent, and is unprepared with the last", async () => {
    claim("shared");
    const pods = [apply("one", ["shared"]), apply("two", ["shared"])];
    allocate("shared", ...pods);
    await site.podReady("one");
    await site.podReady("two");
    assert.equal(asked(/^prepare ok shared$/), 1);
    await site.removePods("one");
    assert.equal(asked(/^unprepare ok shared$/), 0);
    await agent.end("SIGKILL");
    site.kubectl("delete", "pod", "two", "--wait=false");
    agent = await site.join();
    await site.podGone("two");
    assert.equal(asked(/^unprepare ok shared$/), 1);
  });

  for (const [prepare, words] of [
    ["error", /NodePrepareResources failed for ResourceClaim bad: no device for bad/],
    ["huge", /names that are too long or too many/],
    ["unknown", /unknown claim UID another-uid/],
    ["skip", /skipped 1 ResourceClaims/],
  ] as const) {
    test(`a driver that answers ${prepare} keeps only its pod waiting, and is asked again`, async () => {
      claim("bad");
      driver.behave({ prepare });
      const pod = apply("waits", ["bad"]);
      allocate("bad", pod);
      site.apply(site.bound("other"));
      await event("waits", words);
      await site.podReady("other");
      driver.behave({});
      await site.podReady("waits");
      await site.removePods("waits", "other");
    });
  }

  test("driver and agent killed at each step: the pod starts, ends, and nothing stays prepared", async () => {
    claim("hard");
    driver.behave({ prepare: "die" });
    const pod = apply("hard", ["hard"]);
    allocate("hard", pod);
    await until("the driver died in the call", () => driver.isOver);
    await event("hard", /NodePrepareResources/);
    driver.behave({ prepare: "hang" });
    driver.start();
    await until("the driver hangs in the call", () => asked(/^prepare hang hard$/) > 0);
    await agent.end("SIGKILL");
    assert.ok(state().includes(uidOf("hard")), state());
    driver.behave({});
    agent = await site.join();
    await site.podReady("hard");
    const uid = uidOf("hard");
    assert.match(await said(pod, "main"), new RegExp(`CLAIM_HARD_FIRST=${uid}`));
    await driver.end("SIGKILL");
    site.kubectl("delete", "pod", "hard", "--wait=false");
    await until("the agent waits for the driver", () => /unprepare dynamic resources/.test(agent.stderr), {
      seen: () => agent.stderr.slice(-2000),
    });
    assert.ok(site.pod("hard"));
    await agent.end("SIGKILL");
    site.kubectl("delete", "resourceclaim", "hard", "--wait=false");
    agent = await site.join();
    driver.start();
    await site.podGone("hard");
    assert.equal(asked(/^unprepare ok hard$/), 1);
    assert.ok(!state().includes(uid));
  });

  test("a claim of a template, and a driver that only speaks v1beta1", async () => {
    await driver.end("SIGTERM");
    await driver.register("v1beta1.DRAPlugin");
    site.apply({
      apiVersion: "resource.k8s.io/v1",
      kind: "ResourceClaimTemplate",
      metadata: { name: "t" },
      spec: { spec },
    });
    const resourceClaims = [{ name: "c0", resourceClaimTemplateName: "t" }];
    site.apply(site.bound("generated", { resourceClaims, containers: [container("main", [{ name: "c0" }])] }));
    const pod = await site.podIs("generated", "has its claim", ({ status }) =>
      status?.resourceClaimStatuses?.some(({ resourceClaimName }) => resourceClaimName !== undefined),
    );
    const name = pod.status?.resourceClaimStatuses?.[0]?.resourceClaimName ?? "";
    allocate(name, pod);
    await site.podReady("generated");
    assert.match(await said(pod, "main"), /_FIRST=/);
    await site.removePods("generated");
    await driver.end("SIGTERM");
  });

  test("the health of devices is in the pod's status", async () => {
    claim("health");
    driver.behave({ health: "Healthy" });
    const pod = apply("patient", ["health"]);
    allocate("health", pod);
    const id = `${DRIVER}/device=${uidOf("health")}-first`;
    const is = (health: string) => (found: Pod) =>
      found.status?.containerStatuses?.[0]?.allocatedResourcesStatus?.some(
        ({ name, resources = [] }) =>
          name === "claim:c0" && resources.some((one) => one.resourceID === id && one.health === health),
      );
    await site.podIs("patient", "is healthy", is("Healthy"));
    driver.behave({ health: "Unhealthy" });
    await site.podIs("patient", "is unhealthy", is("Unhealthy"));
    await driver.end("SIGKILL");
    await site.podIs("patient", "is unknown", is("Unknown"));
    driver.start();
    driver.behave({});
    await site.removePods("patient");
  });

  test("slices of a driver that is gone are deleted, those of other nodes stay", async () => {
    const slice = (name: string, nodeName: string): object => ({
      apiVersion: "resource.k8s.io/v1",
      kind: "ResourceSlice",
      metadata: { name },
      spec: {
        nodeName,
        driver: DRIVER,
        pool: { name: "pool", generation: 1, resourceSliceCount: 1 },
        devices: [{ name: "dev-first" }],
      },
    });
    site.apply(slice("here", site.nodeName));
    site.apply(slice("there", "another-node"));
    await driver.end("SIGTERM");
    const names = (): string[] =>
      site
        .get<{ items: { metadata: { name: string } }[] }>("resourceslices")
        .items.map(({ metadata }) => metadata.name);
    await until("it is deleted", () => !names().includes("here"), { limitMs: 60_000, seen: names });
    assert.deepEqual(names(), ["there"]);
  });
});
