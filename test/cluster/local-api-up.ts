/** The real kubectl on `kubelet up`: objects, pods from an apply to their end, pods of files, and what a kill -9 leaves. */
import assert from "node:assert/strict";
import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { ConfigMap, Pod } from "../../src/model/generated/types.ts";
import { FOREVER, manifest, shell } from "../integration/support/manifests.ts";
import { type Agent, NODE, requireMachine, Site } from "../integration/support/site.ts";
import { until } from "../integration/support/until.ts";
import { LocalKubectl, skipWithoutKubectl } from "../support/local-kubectl.ts";

requireMachine();
skipWithoutKubectl();

const READY = ["wait", "--for=condition=Ready", "--timeout=60s"];

describe("kubectl without a cluster", () => {
  let site: Site;
  let agent: Agent;
  let kubectl: LocalKubectl;

  before(async () => {
    site = new Site();
    agent = await site.up();
    kubectl = new LocalKubectl(site);
    // A wait for a condition fails at once while the node is not registered yet.
    await kubectl.ok("wait", "--for=create", "--timeout=60s", `node/${NODE}`);
    await kubectl.ok(...READY, `node/${NODE}`);
  });
  after(async () => {
    await kubectl?.close();
    await site?.close();
  });

  test("says what it is and what it serves", async () => {
    assert.match(await kubectl.ok("version"), /^Server Version: v1\.36\.\d/m);
    assert.match(await kubectl.ok("cluster-info"), /is running at .*https:\/\/127\.0\.0\.1:/);
    const kinds = await kubectl.ok("api-resources");
    for (const line of [
      /^pods +po +v1 +true +Pod$/m,
      /^nodes +no +v1 +false +Node$/m,
      /^deployments +deploy +apps\/v1 +true +Deployment$/m,
      /^cronjobs +cj +batch\/v1 +true +CronJob$/m,
    ]) {
      assert.match(kinds, line);
    }
    assert.match(await kubectl.ok("api-versions"), /^apps\/v1$/m);
    assert.match(await kubectl.fails("get", "ingresses"), /the server doesn't have a resource type "ingresses"/);
    const explained = await kubectl.ok("explain", "pod.spec.containers.livenessProbe");
    assert.match(explained, /KIND: +Pod[^]*livenessProbe <Probe>[^]*periodSeconds\t<integer>/);
    assert.equal(await kubectl.ok("auth", "can-i", "delete", "pods"), "yes\n");
    assert.match(await kubectl.ok("auth", "whoami"), /Username +\S+/);
  });

  test("shows the node as a cluster would", async () => {
    const lines = (await kubectl.ok("get", "nodes", "-o", "wide")).trimEnd().split("\n");
    assert.match(lines[0] ?? "", /^NAME +STATUS +ROLES +AGE +VERSION +INTERNAL-IP +EXTERNAL-IP +OS-IMAGE +KERNEL/);
    assert.match(lines[1] ?? "", new RegExp(`^${NODE} +Ready +<none> +\\S+ +v1\\.36`));
    const described = await kubectl.ok("describe", "node", NODE);
    assert.match(described, /^Allocatable:/m);
    assert.match(described, /^ +Ready +True /m);
    assert.match(described, /^Allocated resources:/m);
  });

  test("a pod from apply to its end: get, describe, events, wait, label, annotate, patch, diff, edit, delete", async () => {
    const pod = manifest("web", {}, { labels: { app: "web" } });
    assert.equal(kubectl.with(pod, "apply", "-f", "-"), "pod/web created\n");
    await kubectl.ok(...READY, "pod/web");
    assert.equal(kubectl.with(pod, "apply", "-f", "-"), "pod/web unchanged\n");
    assert.match(await kubectl.ok("get", "pods", "-l", "app=web"), /^web +1\/1 +Running +0 +\S+\n$/m);
    assert.match(
      await kubectl.ok("get", "pods", "-o", "wide"),
      new RegExp(`^web .* \\d+\\.\\d+\\.\\d+\\.\\d+ +${NODE} `, "m"),
    );
    assert.equal(await kubectl.ok("get", "pods", "--field-selector=status.phase=Running", "-o", "name"), "pod/web\n");
    assert.equal(await kubectl.ok("get", "pods", "-l", "app!=web", "-o", "name"), "");
    // Events are sent beside the status.
    const events = [/Normal +Scheduled .*Successfully assigned default\/web to here/, /Normal +Started /];
    const described = await until("its events", async () => {
      const text = await kubectl.ok("describe", "pod", "web");
      return events.every((event) => event.test(text)) && text;
    });
    assert.match(described, /^Status: +Running$/m);
    assert.match(await kubectl.ok("events", "--for", "pod/web"), /Normal +Started +Pod\/web/);
    assert.match(await kubectl.ok("get", "events", "--field-selector=involvedObject.name=web"), /Scheduled/);

    assert.equal(await kubectl.ok("label", "pod", "web", "tier=front"), "pod/web labeled\n");
    assert.equal(await kubectl.ok("annotate", "pod", "web", "note=a word"), "pod/web annotated\n");
    assert.match(await kubectl.fails("label", "pod", "web", "tier=back"), /already has a value/);
    await kubectl.ok("patch", "pod", "web", "-p", '{"metadata":{"labels":{"by":"strategic"}}}');
    await kubectl.ok("patch", "pod", "web", "--type=merge", "-p", '{"metadata":{"labels":{"by":"merge"}}}');
    const change = JSON.stringify([{ op: "replace", path: "/metadata/labels/by", value: "json" }]);
    await kubectl.ok("patch", "pod", "web", "--type=json", "-p", change);
    const { metadata } = await kubectl.json<Pod>("get", "pod", "web");
    assert.deepEqual(metadata.labels, { app: "web", tier: "front", by: "json" });
    assert.equal(metadata.annotations?.["note"], "a word");

    const wanted = join(site.dir, "wanted.json");
    writeFileSync(wanted, JSON.stringify({ ...pod, metadata: { ...pod.metadata, labels: { app: "other" } } }));
    const difference = await kubectl.run("diff", "-f", wanted);
    assert.equal(difference.code, 1, difference.stderr);
    assert.match(difference.stdout, /^-\s+app: web$/m);
    assert.match(difference.stdout, /^\+\s+app: other$/m);

    const editor = join(site.dir, "editor");
    writeFileSync(editor, "#!/bin/sh\nsed -i 's/tier: front/tier: edited/' \"$1\"\n");
    chmodSync(editor, 0o755);
    const env = { ...process.env, HOME: site.dir, EDITOR: editor };
    const edited = await kubectl.begin(["edit", "pod", "web"], { env }).ended;
    assert.equal(edited.code, 0, edited.stderr);
    assert.equal(edited.stdout, "pod/web edited\n");
    assert.equal(await kubectl.ok("get", "pod", "web", "-o", "jsonpath={.metadata.labels.tier}"), "edited");

    const refused = await kubectl.fails("patch", "pod", "web", "-p", '{"spec":{"hostNetwork":true}}');
    assert.match(refused, /The Pod "web" is invalid: spec: Forbidden: pod updates may not change fields other than/);
    const before = await site.find("web");
    assert.ok(before);
    const watched = kubectl.begin(["get", "pods", "-w", "--output-watch-events"]);
    await watched.says(/ADDED +web/);
    assert.equal(await kubectl.ok("delete", "pod", "web"), 'pod "web" deleted from default namespace\n');
    await watched.says(/MODIFIED +web +1\/1 +Terminating/);
    await watched.says(/DELETED +web/);
    await site.gone("web");
    assert.match(await kubectl.fails("get", "pod", "web"), /Error from server \(NotFound\): pods "web" not found/);
  });

  test("server-side apply has owners, and conflicts that name them", async () => {
    const map = (value: string): ConfigMap => ({
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: "owned" },
      data: { word: value },
    });
    const args = ["apply", "--server-side", "-f", "-"];
    assert.equal(kubectl.with(map("one"), ...args), "configmap/owned serverside-applied\n");
    const file = join(site.dir, "owned.json");
    writeFileSync(file, JSON.stringify(map("two")));
    const other = ["apply", "--server-side", "--field-manager=other", "-f", file];
    assert.match(await kubectl.fails(...other), /conflict with "kubectl": \.data\.word/);
    await kubectl.ok(...other, "--force-conflicts");
    assert.equal(await kubectl.ok("get", "cm", "owned", "-o", "jsonpath={.data.word}"), "two");
    const shown = await kubectl.json<ConfigMap>("get", "cm", "owned", "--show-managed-fields");
    // Whoever owns nothing any more is no owner.
    const owners = shown.metadata.managedFields?.map(({ manager, operation }) => [manager, operation]);
    assert.deepEqual(owners, [["other", "Apply"]]);
  });

  test("a pod uses a ConfigMap, a Secret, its namespace's account and its token", async () => {
    await kubectl.ok("create", "namespace", "shop");
    await kubectl.ok("create", "configmap", "settings", "-n", "shop", "--from-literal=word=hello");
    await kubectl.ok("create", "secret", "generic", "key", "-n", "shop", "--from-literal=pass=hidden");
    const script = 'echo "$WORD $(cat /s/pass) $(wc -c < /var/run/secrets/kubernetes.io/serviceaccount/token)"';
    const main = shell("main", script, {
      env: [{ name: "WORD", valueFrom: { configMapKeyRef: { name: "settings", key: "word" } } }],
      volumeMounts: [{ name: "s", mountPath: "/s" }],
    });
    const volumes = [{ name: "s", secret: { secretName: "key" } }];
    const pod = manifest("uses", { restartPolicy: "Never", containers: [main], volumes }, { namespace: "shop" });
    kubectl.with(pod, "create", "-f", "-");
    await kubectl.ok("wait", "-n", "shop", "--for=jsonpath={.status.phase}=Succeeded", "pod/uses", "--timeout=60s");
    assert.match(await kubectl.ok("logs", "-n", "shop", "uses"), /^hello hidden \d{3,}\n$/);
    assert.equal(await kubectl.ok("get", "pods", "-A", "-o", "name"), "pod/uses\n");
    await kubectl.ok("delete", "pod", "-n", "shop", "uses");
  });

  test("wrong input gets the words of Kubernetes", async () => {
    const write = (name: string, object: unknown): string => {
      const path = join(site.dir, name);
      writeFileSync(path, JSON.stringify(object));
      return path;
    };
    const nameless = write("bad.json", manifest("Bad_Name", { containers: [] }));
    const said = await kubectl.fails("create", "-f", nameless, "--validate=false");
    assert.match(said, /The Pod "Bad_Name" is invalid:/);
    assert.match(said, /\* metadata\.name: Invalid value: "Bad_Name": a lowercase RFC 1123 subdomain/);
    assert.match(said, /\* spec\.containers: Required value/);
    const typo = write("typo.json", { ...manifest("typo"), spec: { ...manifest("typo").spec, hostNetwrk: true } });
    assert.match(await kubectl.fails("create", "-f", typo), /strict decoding error: unknown field "spec\.hostNetwrk"/);
    assert.match(await kubectl.fails("create", "cm", "x", "-n", "nowhere"), /namespaces "nowhere" not found/);
  });

  test("a pod that does not fit waits and says why", async () => {
    const huge = shell("main", FOREVER, { resources: { requests: { memory: "9999Gi" } } });
    kubectl.with(manifest("huge", { containers: [huge] }), "create", "-f", "-");
    const pod = await kubectl.podIs("huge", "has been looked at", ({ status }) =>
      status?.conditions?.some(({ type, status: is }) => type === "PodScheduled" && is === "False"),
    );
    const [condition] = (pod.status?.conditions ?? []).filter(({ type }) => type === "PodScheduled");
    assert.equal(condition?.reason, "Unschedulable");
    assert.match(condition?.message ?? "", /^0\/1 nodes are available: 1 Insufficient memory\./);
    assert.match(await kubectl.ok("get", "pod", "huge"), /huge +0\/1 +Pending/);
    await until("the event", async () =>
      /Warning +FailedScheduling .*Insufficient memory/.test(await kubectl.ok("describe", "pod", "huge")),
    );
    await kubectl.ok("delete", "pod", "huge");
  });

  test("a pod of a file is there, and to delete it says where it comes from", async () => {
    site.write(manifest("file"));
    await site.running("file");
    await kubectl.ok("wait", "--for=create", "--timeout=60s", `pod/file-${NODE}`);
    await kubectl.ok(...READY, `pod/file-${NODE}`);
    const { stdout, stderr, code } = await kubectl.run("delete", "pod", `file-${NODE}`, "--wait=false");
    assert.equal(code, 0, stderr);
    assert.match(stdout, /deleted/);
    assert.match(stderr, new RegExp(`^Warning: .*${site.pods}`, "m"));
    await kubectl.podIs(`file-${NODE}`, "is back", ({ metadata }) => metadata.deletionTimestamp === undefined);
    site.remove("file");
    await until("it is gone", async () => (await kubectl.ok("get", "pods", "-o", "name")) === "");
  });

  test("top shows nodes and pods by what the agent measures", async () => {
    kubectl.with(manifest("busy"), "create", "-f", "-");
    await kubectl.ok(...READY, "pod/busy");
    await until("usage of the node", async () =>
      /^here +\d+m +\d+% +\d+Mi +\d+%/m.test((await kubectl.run("top", "node")).stdout),
    );
    await until("usage of the pod", async () => /^busy +\d+m +\d+Mi/m.test((await kubectl.run("top", "pod")).stdout));
    const lines = await kubectl.ok("top", "pod", "busy", "--containers");
    assert.match(lines, /^busy +main +\d+m +\d+Mi/m);
    await kubectl.ok("delete", "pod", "busy");
  });

  test("what was acknowledged survives kill -9, and pods run on", async () => {
    kubectl.with(manifest("stays"), "create", "-f", "-");
    await kubectl.ok(...READY, "pod/stays");
    const { metadata, status } = await kubectl.json<Pod>("get", "pod", "stays");
    await kubectl.ok("create", "configmap", "last", "--from-literal=word=kept");
    await agent.end("SIGKILL");
    agent = await site.up();
    assert.equal(await kubectl.ok("get", "cm", "last", "-o", "jsonpath={.data.word}"), "kept");
    await kubectl.ok(...READY, "pod/stays");
    const again = await kubectl.json<Pod>("get", "pod", "stays");
    assert.equal(again.metadata.uid, metadata.uid);
    assert.equal(again.status?.containerStatuses?.[0]?.containerID, status?.containerStatuses?.[0]?.containerID);
    assert.equal(again.status?.containerStatuses?.[0]?.restartCount, 0);
    await kubectl.ok("delete", "pod", "stays");
  });

  test("an agent without the API keeps what was written, and stops its pods", async () => {
    kubectl.with(manifest("waits"), "create", "-f", "-");
    await kubectl.ok(...READY, "pod/waits");
    const idOf = ({ status }: Pod): string | undefined => status?.containerStatuses?.[0]?.containerID;
    const before = idOf(await kubectl.json<Pod>("get", "pod", "waits"));
    await agent.end("SIGTERM");
    agent = await site.up(["--apiserver=false"]);
    await site.event("Killing", "waits");
    await until("no pods", async () => (await site.list()).length === 0);
    await agent.end("SIGTERM");
    agent = await site.up();
    assert.equal(await kubectl.ok("get", "cm", "last", "-o", "jsonpath={.data.word}"), "kept");
    await until("another container of the pod", async () => {
      const pod = await kubectl.json<Pod>("get", "pod", "waits");
      return pod.status?.containerStatuses?.[0]?.state?.running !== undefined && idOf(pod) !== before;
    });
    await kubectl.ok("delete", "pod", "waits");
    await site.gone("waits");
  });
});
