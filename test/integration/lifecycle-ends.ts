/** Sidecars, hooks and the end of pods: who starts and stops when, and how long it may take; on real containers. */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, renameSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import type { Container, Pod, PodSpec, PodStatus } from "../../src/model/generated/types.ts";
import { http } from "./support/http.ts";
import { FOREVER, forever, manifest, shell } from "./support/manifests.ts";
import { type Agent, ids, requireMachine, Site, whyNoExec } from "./support/site.ts";
import { statusOf } from "./support/told.ts";
import { pause, SLOWNESS, until } from "./support/until.ts";

requireMachine();

describe("sidecars, hooks and ends", () => {
  const skip = whyNoExec() ?? false;
  const site = new Site();
  const marks = join(site.dir, "marks");
  let agent: Agent;

  before(async () => {
    mkdirSync(marks);
    agent = await site.up();
  });
  after(() => site.close());

  const volumeMounts = [{ name: "marks", mountPath: "/marks" }];
  /** A pod whose containers write down what they do, in a file of its own. */
  const marked = (name: string, spec: Partial<PodSpec>): Pod => {
    const mounted = (one: Container): Container => ({ ...one, volumeMounts });
    return manifest(name, {
      ...spec,
      containers: (spec.containers ?? []).map(mounted),
      ...(spec.initContainers && { initContainers: spec.initContainers.map(mounted) }),
      volumes: [{ name: "marks", hostPath: { path: marks } }],
    });
  };
  const lines = (name: string): string[] =>
    existsSync(join(marks, name)) ? readFileSync(join(marks, name), "utf8").trim().split("\n") : [];
  /** Says when it begins and, some time after it was told to, when it ends. */
  const noisy = (pod: string, name: string, more: Partial<Container> & { endsAfter?: string } = {}): Container => {
    const { endsAfter = "0", ...fields } = more;
    const end = `echo "${name} told" >> /marks/${pod}; sleep ${endsAfter}; echo "${name} ends" >> /marks/${pod}; exit 0`;
    const script = `trap '${end}' TERM; echo "${name} begins" >> /marks/${pod}; while :; do sleep 0.1; done`;
    return shell(name, script, fields);
  };
  const gone = async (name: string): Promise<number> => {
    const began = performance.now();
    site.remove(name);
    await site.gone(name);
    return performance.now() - began;
  };

  it("sidecars start in order before the others, and stop after them in the reverse order", { skip }, async () => {
    const sidecar = { restartPolicy: "Always" };
    const startupProbe = { exec: { command: ["test", "-e", "/tmp/up"] }, periodSeconds: 1 };
    // What is started next may write sooner than a container that has only just been started.
    const probed = (name: string, first = ""): Container => {
      const script = noisy("order", name).command?.at(-1)?.replace("while", "touch /tmp/up; while");
      return shell(name, `${first}${script}`, { ...sidecar, startupProbe });
    };
    const spec = {
      initContainers: [probed("one", "sleep 1; "), probed("two"), shell("init", "echo init >> /marks/order")],
      containers: [noisy("order", "main", { endsAfter: "1" })],
      terminationGracePeriodSeconds: 20,
    };
    site.write(marked("order", spec));
    await site.running("order");
    await until("the main container begins", () => lines("order").includes("main begins"));
    assert.deepEqual(lines("order"), ["one begins", "two begins", "init", "main begins"]);
    await gone("order");
    const ends = ["main told", "main ends", "two told", "two ends", "one told", "one ends"];
    assert.deepEqual(lines("order").slice(4), ends);
  });

  it("a sidecar that ends is started again; it does not keep a finished pod alive", async () => {
    const side = shell("side", "echo side >> /marks/done; sleep 1", { restartPolicy: "Always" });
    const main = shell("main", 'until [ "$(wc -l < /marks/done)" -ge 2 ]; do sleep 0.1; done; exit 0');
    site.write(marked("done", { initContainers: [side], containers: [main], restartPolicy: "Never" }));
    await site.pod("done", "has succeeded", ({ phase }) => phase === "Succeeded");
    assert.ok(lines("done").length >= 2, lines("done").join());
    const found = await statusOf(agent, "done");
    assert.ok((found?.initContainerStatuses?.[0]?.restartCount ?? 0) >= 1);
    assert.equal(found?.containerStatuses?.[0]?.state?.terminated?.reason, "Completed");
    await gone("done");
  });

  it("postStart runs before the next container, preStop before the signal", { skip }, async () => {
    const exec = (word: string) => ({ exec: { command: ["sh", "-c", `echo "${word}" >> /marks/hooks`] } });
    const begun = "until grep -q begins /marks/hooks; do sleep 0.1; done";
    const postStart = { exec: { command: ["sh", "-c", `${begun}; sleep 1; echo "started" >> /marks/hooks`] } };
    const first = noisy("hooks", "first", { lifecycle: { postStart, preStop: exec("stopping") } });
    const second = noisy("hooks", "second");
    site.write(marked("hooks", { containers: [first, second], terminationGracePeriodSeconds: 10 }));
    await site.running("hooks");
    await until("both have begun", () => lines("hooks").includes("second begins"));
    assert.deepEqual(lines("hooks"), ["first begins", "started", "second begins"]);
    await gone("hooks");
    const after = lines("hooks").slice(3);
    assert.ok(after.indexOf("stopping") < after.indexOf("first told"), after.join());
  });

  it("a postStart that prints 10 MB and fails leaves only a bounded text in the agent", { skip }, async () => {
    const flood = "head -c 10000000 /dev/zero | tr '\\0' x; exit 1";
    const postStart = { exec: { command: ["sh", "-c", flood] } };
    const spec = { terminationGracePeriodSeconds: 1 };
    site.write(marked("flood", { ...spec, containers: [shell("main", FOREVER, { lifecycle: { postStart } })] }));
    const pod = await site.pod("flood", "was started twice", ({ containers }) => (containers[0]?.restarts ?? 0) >= 1);
    assert.match(JSON.stringify(pod.errors), /omitted\)/);
    assert.ok(JSON.stringify(pod).length < 20_000, `${JSON.stringify(pod).length} characters explain it`);
    await gone("flood");
  });

  it("a postStart that fails ends its container with its preStop hook, and it is said", { skip }, async () => {
    const postStart = { exec: { command: ["sh", "-c", "echo no such luck; exit 7"] } };
    const preStop = { exec: { command: ["sh", "-c", "echo stopping >> /marks/unlucky"] } };
    site.write(marked("unlucky", { containers: [shell("main", FOREVER, { lifecycle: { postStart, preStop } })] }));
    await site.event("FailedPostStartHook", "unlucky");
    await site.event("Killing", "unlucky", /FailedPostStartHook/);
    await until("the preStop hook has run", () => lines("unlucky").includes("stopping"));
    await gone("unlucky");
  });

  it("a container whose new image does not exist is not shown as ready any more", async () => {
    const swapped = (image?: string): Pod => {
      const main = shell("main", FOREVER, image === undefined ? {} : { image });
      return manifest("swapped", { containers: [main] }, { uid: "swapped-1" });
    };
    const isReady = (status: PodStatus | undefined): boolean =>
      status?.conditions?.find(({ type }) => type === "Ready")?.status === "True";
    site.write(swapped());
    await site.running("swapped");
    await until("it is ready", async () => isReady(await statusOf(agent, "swapped")));
    site.write(swapped("registry.invalid/none:1"));
    const found = await until("it waits for its image", async () => {
      const status = await statusOf(agent, "swapped");
      return status?.containerStatuses?.[0]?.state?.waiting?.reason === "ErrImageNeverPull" ? status : undefined;
    });
    assert.equal(isReady(found), false);
    assert.equal(found.phase, "Running");
    site.write(swapped());
    await until("it is ready again", async () => isReady(await statusOf(agent, "swapped")));
    await gone("swapped");
  });

  it("a pod that became an orphan while no agent ran has its hook and its grace period", { skip }, async () => {
    const preStop = { exec: { command: ["sh", "-c", "echo stopping >> /marks/orphan"] } };
    const main = noisy("orphan", "main", { endsAfter: "4", lifecycle: { preStop } });
    site.write({
      ...marked("orphan", { containers: [main], terminationGracePeriodSeconds: 60 }),
      metadata: { name: "orphan", uid: "orphan-1" },
    });
    await site.running("orphan");
    await until("it has begun", () => lines("orphan").includes("main begins"));
    await agent.end("SIGTERM");
    site.remove("orphan");
    agent = await site.up();
    await until("nothing is left of it", async () => (await site.containers("orphan-1")).length === 0);
    assert.deepEqual(lines("orphan"), ["main begins", "stopping", "main told", "main ends"]);
  });

  it("while the network is not ready a pod says so, and it starts as soon as it is", async () => {
    const config = join(site.layout.cniConfDir, "10-kubelet-ts.conflist");
    const { signal } = new AbortController();
    renameSync(config, `${config}.away`);
    try {
      await until("the runtime has no network", async () => !(await site.cri.status({ signal })).networkReady);
      site.write(manifest("unplugged"));
      await site.event("NetworkNotReady", "unplugged", /^network is not ready: container runtime network not ready: /);
    } finally {
      renameSync(`${config}.away`, config);
    }
    await site.running("unplugged");
    await gone("unplugged");
  });

  it("an HTTP hook reaches the pod, and sleeping is a hook too", async () => {
    const serve =
      "mkdir -p /w/cgi-bin; printf '#!/bin/sh\\necho called >> /marks/http\\necho; echo' > /w/cgi-bin/stop; chmod +x /w/cgi-bin/stop; exec httpd -f -p 8080 -h /w";
    const main = shell("main", serve, { lifecycle: { preStop: { httpGet: { path: "/cgi-bin/stop", port: 8080 } } } });
    const side = shell("side", FOREVER, { lifecycle: { preStop: { sleep: { seconds: 2 } } } });
    site.write(marked("http", { containers: [main, side], terminationGracePeriodSeconds: 3 }));
    const { ip } = await site.running("http");
    await until("the server answers", () => http(`http://${ip}:8080/`).catch(() => undefined));
    const took = await gone("http");
    assert.deepEqual(lines("http"), ["called"]);
    assert.ok(took >= 2000, `${took} ms`);
  });

  it("a preStop that hangs and a process that ignores the signal get the grace and no more", async () => {
    // What it does after the grace is still done: it ends with the container.
    const begins = "read up _ < /proc/uptime; echo $up >> /marks/deaf";
    const preStop = { exec: { command: ["sh", "-c", `${begins}; sleep 3.1; echo late >> /marks/deaf; sleep 3600`] } };
    const deaf = shell("main", "trap '' TERM; while :; do sleep 0.2; done", { lifecycle: { preStop } });
    site.write(marked("deaf", { containers: [deaf], terminationGracePeriodSeconds: 3 }));
    await site.running("deaf");
    const removedAt = Number(readFileSync("/proc/uptime", "utf8").split(" ", 1)[0]);
    const took = await gone("deaf");
    // The grace for the hook, and the 2 s that a container always gets after it.
    assert.ok(took > 4500 && took < 15_000 * SLOWNESS, `${took} ms`);
    if (SLOWNESS > 1 || skip !== false) return;
    const [begunAt, ...after] = lines("deaf");
    assert.ok(begunAt !== undefined, "the hook has begun");
    // Where a command takes seconds to begin, the container may be gone before.
    if (Number(begunAt) - removedAt < 1) assert.deepEqual(after, ["late"]);
  });

  it("a pod removed while it starts or waits for an image goes at once", async () => {
    site.write(marked("hurried", { containers: [noisy("hurried", "main")] }));
    await until("it is known", async () => (await site.find("hurried")) !== undefined);
    await gone("hurried");
    const image = "registry.invalid/none:1";
    site.write(manifest("pulling", { containers: [{ name: "main", image, imagePullPolicy: "Always" }] }));
    await site.pod("pulling", "pulls or failed to", ({ state }) => /Pull|Creating/.test(state));
    assert.ok((await gone("pulling")) < 10_000 * SLOWNESS);
    await until("nothing runs", async () => (await site.containers()).every(({ labels }) => !isOf(labels, "hurried")));
  });

  it("the rules of a container decide whether it is started again, whatever the others do", async () => {
    const uid = "ruled-1";
    const rules = [{ action: "Restart", exitCodes: { operator: "In", values: [42] } }];
    const once = "if [ -e /marks/ruled ]; then exit 0; fi; touch /marks/ruled; exit 42";
    const ruled = shell("ruled", once, { restartPolicy: "Never", restartPolicyRules: rules });
    site.write({
      ...marked("ruled", { containers: [shell("main", FOREVER), ruled] }),
      metadata: { name: "ruled", uid },
    });
    const found = await until("it ran twice", async () => {
      const status = (await statusOf(agent, "ruled"))?.containerStatuses?.find(({ name }) => name === "ruled");
      return status?.restartCount === 1 && status.state?.terminated?.exitCode === 0 ? status : undefined;
    });
    assert.equal(found.lastState?.terminated?.exitCode, 42);
    await pause(500);
    const again = (await statusOf(agent, "ruled"))?.containerStatuses?.find(({ name }) => name === "ruled");
    assert.equal(again?.restartCount, 1);
    await gone("ruled");
  });

  it("a pod whose containers are not in its cgroup is made anew when the agent comes with other settings", async () => {
    await agent.end("SIGTERM");
    agent = await site.up(["--cgroups-per-qos=false", "--enforce-node-allocatable="]);
    site.write(manifest("moved", {}, { uid: "moved-1" }));
    const first = await site.running("moved");
    await agent.end("SIGTERM");
    agent = await site.up();
    const second = await site.pod("moved", "runs anew", (pod) => {
      return pod.state === "Running" && ids(pod)["main"] !== ids(first)["main"] && pod.readyContainers === 1;
    });
    const id = (ids(second)["main"] ?? "").replace(/^.*:\/\//, "");
    const isUnified = existsSync("/sys/fs/cgroup/cgroup.controllers");
    const top = isUnified ? "/sys/fs/cgroup" : "/sys/fs/cgroup/cpu";
    assert.ok(existsSync(join(top, site.layout.cgroupRoot, "kubepods/besteffort/podmoved-1", id)));
    await gone("moved");
  });

  it("what the node forbids waits as Blocked, and runs when it is allowed again", async () => {
    await agent.end("SIGTERM");
    agent = await site.up(["--allow-privileged=false", "--host-network-sources=api,http"]);
    const securityContext = { privileged: true };
    site.write(manifest("strong", { containers: [shell("main", FOREVER, { securityContext })] }));
    site.write(manifest("hosted", { hostNetwork: true }));
    for (const [name, words] of [
      ["strong", /privileged container, but is disallowed/],
      ["hosted", /host networking, but is disallowed/],
    ] as const) {
      const pod = await site.pod(name, "is blocked", ({ state }) => state === "Blocked");
      assert.equal(pod.phase, "Pending");
      assert.match((await statusOf(agent, name))?.containerStatuses?.[0]?.state?.waiting?.message ?? "", words);
      assert.deepEqual(await site.containers(pod.uid), []);
    }
    await agent.end("SIGTERM");
    agent = await site.up();
    for (const name of ["strong", "hosted"]) await site.running(name);
    for (const name of ["strong", "hosted"]) await gone(name);
  });

  /** Removes a pod's sandbox with all containers in it, as `crictl rmp -f` does. */
  const removeBehindTheAgent = async (uid: string): Promise<void> => {
    const { signal } = new AbortController();
    let problem: unknown;
    const remove = async (): Promise<boolean> => {
      for (const { id } of await site.sandboxes(uid)) {
        await site.cri.stopSandbox(id, { signal });
        await site.cri.removeSandbox(id, { signal });
      }
      return true;
    };
    // The agent stops it, too, as soon as its containers have ended: two that take its network away disturb each other.
    const attempt = (): Promise<boolean> =>
      remove().catch((error: unknown) => {
        problem = error;
        return false;
      });
    await until("its sandboxes are removed", attempt, { seen: () => String(problem) });
  };

  it("a Never pod whose sandbox was removed behind the agent does not run twice", async () => {
    const once = shell("once", "echo once >> /marks/lost");
    const containers = [once, shell("runs", forever("echo runs >> /marks/lost"))];
    site.write(marked("lost", { containers, restartPolicy: "Never" }));
    const { uid } = await site.pod("lost", "has completed one container", (pod) =>
      pod.containers.some(({ name, state }) => name === "once" && state === "terminated"),
    );
    await until("both have begun", () => lines("lost").length === 2);
    await removeBehindTheAgent(uid);
    await site.pod("lost", "has failed", ({ phase }) => phase === "Failed");
    const found = await statusOf(agent, "lost");
    const exitCode = (name: string): number | undefined =>
      found?.containerStatuses?.find((status) => status.name === name)?.state?.terminated?.exitCode;
    assert.equal(exitCode("once"), 0);
    assert.ok((exitCode("runs") ?? 0) > 0, `${exitCode("runs")}`);
    assert.deepEqual(lines("lost").sort(), ["once", "runs"]);
    assert.deepEqual(await site.containers(uid), []);
    await gone("lost");
  });

  it("a completed pod whose sandbox was removed behind the agent stays completed", async () => {
    site.write(marked("kept", { containers: [shell("main", "echo kept >> /marks/kept")], restartPolicy: "Never" }));
    const { uid } = await site.pod("kept", "has succeeded", ({ phase }) => phase === "Succeeded");
    const completed = await statusOf(agent, "kept");
    assert.equal(completed?.containerStatuses?.[0]?.state?.terminated?.reason, "Completed");
    // Two that take its network away at once disturb each other.
    await until("the agent has stopped its sandbox", async () =>
      (await site.sandboxes(uid)).every(({ state }) => state === "notReady"),
    );
    await removeBehindTheAgent(uid);
    // When another pod went all the way the agent has long heard of it.
    site.write(manifest("meanwhile", { containers: [shell("main", "exit 0")], restartPolicy: "Never" }));
    await site.pod("meanwhile", "has succeeded", ({ phase }) => phase === "Succeeded");
    const later = await statusOf(agent, "kept");
    assert.equal(later?.phase, "Succeeded");
    assert.deepEqual(later?.containerStatuses, completed?.containerStatuses);
    assert.deepEqual(lines("kept"), ["kept"]);
    await gone("kept");
    await gone("meanwhile");
  });

  it("a pod that ends before its container began does not show it as waiting", async () => {
    const main = { name: "main", image: "nowhere.invalid/no:1" };
    site.write(manifest("unbegun", { containers: [main], restartPolicy: "Never", activeDeadlineSeconds: 2 }));
    await site.pod("unbegun", "has failed", ({ phase }) => phase === "Failed");
    const ended = await until("its status is complete", async () => {
      const status = await statusOf(agent, "unbegun");
      return status?.containerStatuses?.[0]?.state?.terminated;
    });
    assert.deepEqual([ended.reason, ended.exitCode], ["ContainerStatusUnknown", 137]);
    await gone("unbegun");
  });

  it("the whole pod is resized in place, with the container that has no limit of its own", async () => {
    const isUnified = existsSync("/sys/fs/cgroup/cgroup.controllers");
    const file = (path: string): string =>
      isUnified ? `/sys/fs/cgroup${path}/memory.max` : `/sys/fs/cgroup/memory${path}/memory.limit_in_bytes`;
    const sized = (memory: string): Pod => {
      const resources = { limits: { cpu: "500m", memory }, requests: { cpu: "500m", memory } };
      return manifest("sized", { resources, containers: [shell("main", forever())] }, { uid: "sized-1" });
    };
    site.write(sized("64Mi"));
    const first = await site.running("sized");
    const cgroup = `${site.layout.cgroupRoot}/kubepods/podsized-1`;
    const inside = `${cgroup}/${(ids(first)["main"] ?? "").replace(/^.*:\/\//, "")}`;
    const read = (): string[] => [cgroup, inside].map((path) => readFileSync(file(path), "utf8").trim());
    assert.deepEqual(read(), [String(64 << 20), String(64 << 20)]);
    site.write(sized("128Mi"));
    await site.event("ResizeCompleted", "sized");
    await until("both have more", () => read().every((value) => value === String(128 << 20)), { seen: read });
    site.write(sized("32Mi"));
    await until("both have less", () => read().every((value) => value === String(32 << 20)), { seen: read });
    assert.deepEqual(ids(await site.running("sized")), ids(first));
    const memory = async (): Promise<unknown> => (await statusOf(agent, "sized"))?.resources?.limits?.["memory"];
    await until("its status has less", async () => (await memory()) === "32Mi");
    await gone("sized");
  });
});

function isOf(labels: Readonly<Record<string, string>>, pod: string): boolean {
  return (labels["io.kubernetes.pod.name"] ?? "").startsWith(`${pod}-`);
}
