/** The applications of examples/apps on `kubelet up`: real software, by plain manifests and the real kubectl. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { messageOf } from "../../src/lib/errors.ts";
import type { EndpointSlice, Job, PersistentVolumeClaim, PodList } from "../../src/model/generated/types.ts";
import { type Agent, NODE, requireExec, requireMachine, Site } from "../integration/support/site.ts";
import { until } from "../integration/support/until.ts";
import { importArchives, requireAppImages } from "../support/app-images.ts";
import { APPS, containersOf, marks, overlay, WORKLOADS } from "../support/applications.ts";
import { LocalKubectl, skipWithoutKubectl } from "../support/local-kubectl.ts";

requireMachine();
requireExec();
skipWithoutKubectl();
const images = requireAppImages();

/** Ends what hangs; a rollout takes seconds. */
const LIMIT = "--timeout=120s";
/** A schedule of once a minute, and the pod that it starts. */
const CRON_LIMIT_MS = 120_000;

describe("applications of real software without a cluster", () => {
  const site = new Site();
  let agent: Agent;
  let kubectl: LocalKubectl;
  /** The address of nginx. */
  let web = "";
  let earlier: object;

  before(async () => {
    agent = await site.up();
    kubectl = new LocalKubectl(site);
    await importArchives(site, images);
    // A wait for a condition fails at once while the node is not registered yet.
    await kubectl.ok("wait", "--for=create", LIMIT, `node/${NODE}`);
    await kubectl.ok("wait", "--for=condition=Ready", LIMIT, `node/${NODE}`);
    earlier = await marks(site, kubectl);
  });
  after(async () => {
    await kubectl?.close();
    await site.close();
  });

  async function rolledOut(): Promise<void> {
    const all = APPS.flatMap((app) => WORKLOADS[app].map((workload) => [workload, "-n", app]));
    await Promise.all(all.map((words) => kubectl.ok("rollout", "status", LIMIT, ...words)));
  }

  async function ask<T>(path: string, body?: string): Promise<T> {
    const answer = await fetch(`http://${web}${path}`, {
      headers: { connection: "close" },
      ...(body !== undefined && { method: "POST", body }),
    });
    const text = await answer.text();
    assert.equal(answer.status, 200, text);
    return JSON.parse(text) as T;
  }

  /** Who answers behind nginx, by version of the image, name of the pod or value of a variable. */
  async function answering(part: "version" | "pod" | "greeting", wanted: readonly string[]): Promise<void> {
    let found: string[] = [];
    const look = async (): Promise<boolean> => {
      const answers: Record<string, string>[] = [];
      try {
        for (let times = 0; times < 12; times++) answers.push(await ask("/about"));
      } catch (error) {
        // Replicas are not ready until they have found the new database, and services follow them.
        found = [messageOf(error)];
        return false;
      }
      found = [...new Set(answers.map((answer) => answer[part] ?? ""))].sort();
      return found.join() === [...wanted].sort().join();
    };
    await until(`answers of ${part} ${wanted.join(", ")}`, look, { seen: () => found });
  }

  const redis = async (pod: string, ...words: readonly string[]): Promise<string> =>
    (await kubectl.ok("exec", "-n", "redis", pod, "--", "redis-cli", ...words)).trim();

  const replicated = (pod: string, key: string, value: string): Promise<unknown> =>
    until(`${pod} has ${key}`, async () => (await redis(pod, "get", key)) === value);

  const collected = (): Promise<string> =>
    kubectl.ok("exec", "-n", "logs", "deployment/collector", "--", "cat", "/data/all.log");

  /** A line of this pod with these words reaches the collector. */
  const shipped = (pod: string, words: RegExp): Promise<string> =>
    until(`the collector has a line of ${pod} with ${words}`, async () =>
      (await collected()).split("\n").find((line) => line.includes(`/${pod}`) && words.test(line)),
    );

  const podsOf = async (namespace: string, app: string): Promise<string[]> => {
    const { items } = await kubectl.json<PodList>("get", "pods", "-n", namespace, "-l", `app=${app}`);
    return items.map(({ metadata }) => metadata.name ?? "");
  };

  test("kubectl apply -k brings them up", async () => {
    const said = await Promise.all(APPS.map((app) => kubectl.ok("apply", "-k", overlay(site, app, { tag: "1" }))));
    for (const text of said) assert.doesNotMatch(text, /unchanged|configured/);
    await rolledOut();
    web = await kubectl.ok("get", "service", "web", "-n", "notes", "-o", "jsonpath={.spec.clusterIP}");
    assert.equal((await podsOf("notes", "api")).length, 2);
    assert.deepEqual(await podsOf("redis", "redis"), ["redis-0", "redis-1", "redis-2"]);
    assert.equal((await podsOf("logs", "shipper")).length, 1);
  });

  test("nginx finds the Python service by name, and that finds PostgreSQL", async () => {
    // The service leads to a pod a moment after that is ready.
    await answering("version", ["1"]);
    assert.equal(await ask("/notes", "the first note"), 1);
    assert.deepEqual(await ask("/notes"), ["the first note"]);
    await answering("pod", await podsOf("notes", "api"));
  });

  test("replicas of Redis find the first pod by its own name", async () => {
    assert.equal(await redis("redis-0", "set", "word", "kept"), "OK");
    for (const pod of ["redis-1", "redis-2"]) await replicated(pod, "word", "kept");
    assert.match(await redis("redis-1", "info", "replication"), /master_host:redis-0\.redis[^]*master_link_status:up/);
    const roles = new Set<string>();
    await until("the service leads to the first and to others", async () => {
      const found = await redis("redis-1", "-h", "redis-read", "info", "replication");
      roles.add(/role:(\w+)/.exec(found)?.[1] ?? "");
      return roles.has("master") && roles.has("slave");
    });
  });

  test("the log shipper finds the collector by name, and sends what all pods write", async () => {
    await shipped("notes_web-", /nginx\/0\.log .* stdout F .*"POST \/notes HTTP\/1\.1" 200/);
    await shipped("notes_api-", /service\/0\.log .* stderr F .*"POST \/notes HTTP\/1\.1" 200/);
    await shipped("redis_redis-0_", /Ready to accept connections/);
  });

  test("kill -9 of the agent: they go on without it, and no container is restarted by the next one", async () => {
    const containers = await containersOf(kubectl);
    assert.equal(Object.keys(containers).length, 9);
    await agent.end("SIGKILL");
    assert.deepEqual(await ask("/notes"), ["the first note"]);
    assert.equal(await ask("/notes", "without an agent"), 2);
    agent = await site.up();
    await rolledOut();
    assert.deepEqual(await containersOf(kubectl), containers);
    assert.deepEqual(await ask("/notes"), ["the first note", "without an agent"]);
    assert.equal(await redis("redis-0", "get", "word"), "kept");
    await ask("/notes?after-the-kill");
    await shipped("notes_web-", /GET \/notes\?after-the-kill/);
  });

  test("kubectl apply upgrades them, and what is in claims stays", async () => {
    const greeting = `- target: {kind: Deployment, name: api}
  patch: |-
    - {op: add, path: /spec/template/spec/containers/0/env/-, value: {name: GREETING, value: hello}}
`;
    const before = await containersOf(kubectl);
    const upgrade = (app: (typeof APPS)[number]): string =>
      overlay(site, app, { tag: "2", ...(app === "notes" && { more: greeting }) });
    const said = await Promise.all(APPS.map((app) => kubectl.ok("apply", "-k", upgrade(app))));
    assert.match(said.join(""), /deployment\.apps\/api configured/);
    assert.match(said.join(""), /service\/web unchanged/);
    await rolledOut();
    // A rollout does not wait for the end of old pods.
    let old: string[] = [];
    const isReplaced = async (): Promise<boolean> => {
      const now = await containersOf(kubectl);
      old = Object.keys(before).filter((pod) => now[pod] === before[pod]);
      return old.length === 0;
    };
    await until("every container is another one", isReplaced, { seen: () => old });
    await answering("version", ["2"]);
    await answering("greeting", ["hello"]);
    assert.deepEqual(await ask("/notes"), ["the first note", "without an agent"]);
    assert.equal(await ask("/notes", "after the upgrade"), 3);
    for (const pod of ["redis-0", "redis-1", "redis-2"]) await replicated(pod, "word", "kept");
    assert.match(await collected(), /POST \/notes HTTP/);
  });

  test("rollout history and undo", async () => {
    for (const [app, workload] of [
      ["notes", "deployment/api"],
      ["logs", "daemonset/shipper"],
      ["notes", "statefulset/database"],
    ] as const) {
      const history = await kubectl.ok("rollout", "history", workload, "-n", app);
      assert.match(history, /^REVISION +CHANGE-CAUSE\n1 +<none>\n2 +<none>\n/m, workload);
      assert.match(await kubectl.ok("rollout", "history", workload, "-n", app, "--revision=1"), /Image:\s+\S+:1$/m);
      assert.match(await kubectl.ok("rollout", "undo", workload, "-n", app), /rolled back/);
    }
    await rolledOut();
    await answering("version", ["1"]);
    await answering("greeting", [""]);
    const images = ["-o", "jsonpath={.items[*].spec.containers[*].image}"];
    assert.match(await kubectl.ok("get", "pods", "-n", "logs", "-l", "app=shipper", ...images), /^\S+\/rsyslog:1$/);
    assert.match(await kubectl.ok("rollout", "history", "deployment/api", "-n", "notes"), /\n2 +<none>\n3 +<none>\n/);
    assert.deepEqual(await ask("/notes"), ["the first note", "without an agent", "after the upgrade"]);
  });

  test("scaling: more replicas get requests, and a pod that comes back finds its claim", async () => {
    await kubectl.ok("scale", "deployment/api", "-n", "notes", "--replicas=3");
    await kubectl.ok("scale", "statefulset/redis", "-n", "redis", "--replicas=2");
    await rolledOut();
    const pods = await until("three pods", async () => {
      const found = await podsOf("notes", "api");
      return found.length === 3 && found;
    });
    await answering("pod", pods);
    const redis2 = ["get", "pod", "redis-2", "-n", "redis"];
    await until("redis-2 is gone", async () => /NotFound/.test((await kubectl.run(...redis2)).stderr));
    const claims = async (): Promise<(string | undefined)[]> =>
      (await kubectl.json<{ items: PersistentVolumeClaim[] }>("get", "pvc", "-n", "redis")).items.map(
        ({ metadata, spec }) => `${metadata?.name} ${spec?.volumeName}`,
      );
    const kept = await claims();
    assert.equal(kept.length, 3);
    await kubectl.ok("scale", "statefulset/redis", "-n", "redis", "--replicas=3");
    await rolledOut();
    assert.deepEqual(await claims(), kept);
    await replicated("redis-2", "word", "kept");
    const slices = ["get", "endpointslices", "-n", "redis", "-l", "kubernetes.io/service-name=redis"];
    await until("three addresses", async () => {
      const { items } = await kubectl.json<{ items: EndpointSlice[] }>(...slices);
      return (
        items.flatMap(({ endpoints }) => endpoints ?? []).filter(({ conditions }) => conditions?.ready).length === 3
      );
    });
  });

  test("the CronJob beside the log shipper runs by its schedule, and its report is shipped too", async () => {
    const done = await until(
      "a job of the schedule completed",
      async () =>
        (await kubectl.json<{ items: Job[] }>("get", "jobs", "-n", "logs")).items.find(
          ({ status }) => status?.succeeded === 1,
        ),
      { limitMs: CRON_LIMIT_MS },
    );
    assert.equal(done.metadata?.ownerReferences?.[0]?.name, "report");
    const report = await kubectl.ok("logs", "-n", "logs", `job/${done.metadata?.name}`);
    assert.match(report, /^report: \d+ lines\n$/);
    await shipped(`logs_${done.metadata?.name}-`, /stdout F report: \d+ lines$/);
    await kubectl.ok("create", "job", "now", "-n", "logs", "--from=cronjob/report");
    await kubectl.ok("wait", "--for=condition=Complete", LIMIT, "-n", "logs", "job/now");
  });

  test("kubectl delete -k leaves no trace", async () => {
    await Promise.all(APPS.map((app) => kubectl.ok("delete", "-k", overlay(site, app, { tag: "2" }))));
    let left: object = {};
    const look = async (): Promise<boolean> => {
      left = await marks(site, kubectl);
      return JSON.stringify(left) === JSON.stringify(earlier);
    };
    const seen = { limitMs: 120_000, seen: () => left };
    await until("nothing is left", look, seen).catch(() => assert.deepEqual(left, earlier));
  });
});
