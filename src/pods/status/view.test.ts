import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { pod } from "../../../test/support/pods.ts";
import { FakeRing } from "../../../test/support/ring.ts";
import type { ContainerStatus, PodStatus } from "../../model/generated/types.ts";
import { stateWord } from "./view.ts";

const web = pod("web").container("app").build();

function waiting(name: string, reason: string | undefined): ContainerStatus {
  const base = { name, image: "", imageID: "", ready: false, restartCount: 0 };
  return reason === undefined
    ? { ...base, state: { running: { startedAt: "2026-01-01T00:00:00Z" } } }
    : { ...base, state: { waiting: { reason } } };
}

describe("the word for a pod's state", () => {
  const cases: { name: string; status: PodStatus | undefined; want: string }[] = [
    { name: "nothing known", status: undefined, want: "Pending" },
    { name: "an empty status", status: {}, want: "Pending" },
    { name: "the phase", status: { phase: "Running", containerStatuses: [waiting("a", undefined)] }, want: "Running" },
    { name: "the pod's reason before the phase", status: { phase: "Failed", reason: "Evicted" }, want: "Evicted" },
    {
      name: "what a container waits for, before the phase",
      status: { phase: "Running", containerStatuses: [waiting("a", undefined), waiting("b", "CrashLoopBackOff")] },
      want: "CrashLoopBackOff",
    },
    {
      name: "trouble before mere beginning",
      status: {
        phase: "Pending",
        containerStatuses: [waiting("a", "ContainerCreating"), waiting("b", "ImagePullBackOff")],
      },
      want: "ImagePullBackOff",
    },
    {
      name: "trouble of an init container, although the others only wait for it",
      status: {
        phase: "Pending",
        initContainerStatuses: [waiting("i", "CrashLoopBackOff")],
        containerStatuses: [waiting("a", "PodInitializing")],
      },
      want: "CrashLoopBackOff",
    },
    {
      name: "the beginning, while it is pending",
      status: { phase: "Pending", containerStatuses: [waiting("a", "PodInitializing")] },
      want: "PodInitializing",
    },
    {
      name: "not the beginning of a pod that ended in it",
      status: { phase: "Failed", containerStatuses: [waiting("a", "PodInitializing")] },
      want: "Failed",
    },
  ];
  for (const { name, status, want } of cases) test(name, () => assert.equal(stateWord(status), want));
});

describe("summaries", () => {
  test("tell where a pod comes from, how many of its containers are ready, its IP, its times and its last step", async () => {
    const ring = new FakeRing();
    const now = ring.clock.now().wall;
    await ring.want(pod("web").container("app").container("side").build());
    const [summary] = ring.view.summaries();
    assert.deepEqual([summary?.uid, summary?.name, summary?.namespace], ["uid-of-web", "web", "default"]);
    assert.deepEqual([summary?.source, summary?.state, summary?.phase], ["file", "Running", "Running"]);
    assert.deepEqual([summary?.readyContainers, summary?.totalContainers, summary?.restarts], [2, 2, 0]);
    assert.match(summary?.ip ?? "", /^10\.88\./);
    assert.deepEqual([summary?.seenAt, summary?.startedAt], [now, now]);
    assert.deepEqual([summary?.step?.step, summary?.step?.container], ["start", "side"]);
  });

  test("are sorted by namespace and name, whatever came first", async () => {
    const ring = new FakeRing();
    const elsewhere = pod("a").container("app").build();
    const other = { ...elsewhere, metadata: { ...elsewhere.metadata, namespace: "other" } };
    await ring.want(pod("c").container("app").build(), other, pod("b").container("app").build());
    assert.deepEqual(
      ring.view.summaries().map(({ namespace, name }) => `${namespace}/${name}`),
      ["default/b", "default/c", "other/a"],
    );
  });

  test("count the restarts of all containers, init containers too", async () => {
    let fails = 1;
    const ring = new FakeRing();
    ring.runtime.program("init", () => ({ exitAfterMs: 1, exitCode: fails-- > 0 ? 1 : 0 }));
    await ring.want(pod("web").init("init").container("app").build());
    await ring.clock.advance(1);
    await ring.clock.advance(20_000);
    const [app] = (await ring.containers()).filter(({ name }) => name === "app");
    ring.runtime.exit(app?.id ?? "", 1);
    await ring.clock.advance(0);
    assert.equal(ring.view.summary("uid-of-web")?.restarts, 2);
  });

  test("show a pod that nobody wants any more until it is gone", async () => {
    const ring = new FakeRing({ app: { termMs: 1000 } });
    await ring.want(web);
    ring.publish();
    await ring.clock.advance(500);
    const [summary] = ring.view.summaries();
    assert.deepEqual([summary?.state, summary?.source], ["Terminating", "runtime"]);
    await ring.clock.advance(500);
    assert.deepEqual(ring.view.summaries(), []);
    assert.equal(ring.view.summary("uid-of-web"), undefined);
  });

  test("tell when a container is tried again", async () => {
    const ring = new FakeRing();
    await ring.wantAsIs(web);
    const summary = ring.view.summary("uid-of-web");
    assert.equal(summary?.state, "ImagePullBackOff");
    assert.equal(summary?.next?.at, ring.clock.now().wall + 10_000);
    assert.match(summary?.next?.why ?? "", /^app: /);
  });

  test("show a refused pod with its reason", async () => {
    const ring = new FakeRing();
    await ring.want(
      pod("web")
        .container("app")
        .with({ volumes: [{ name: "disk", flocker: {} }] })
        .build(),
    );
    const summary = ring.view.summary("uid-of-web");
    assert.deepEqual([summary?.phase, summary?.state], ["Pending", "CreateContainerConfigError"]);
    const event = ring.journal.events(0).find(({ reason }) => reason === "Failed");
    assert.match(event?.message ?? "", /^Error: .*flocker/);
  });
});

describe("explanations", () => {
  test("list init containers first, with what each of them does and did", async () => {
    const ring = new FakeRing({ init: { exitAfterMs: 2000 } });
    await ring.want(pod("web").init("init").container("app").build());
    const waits = ring.view.explain("uid-of-web")?.containers;
    assert.deepEqual(
      waits?.map(({ name, kind, state, reason }) => [name, kind, state, reason]),
      [
        ["init", "init", "running", ""],
        ["app", "regular", "waiting", "PodInitializing"],
      ],
    );
    await ring.clock.advance(2000);
    const [init, app] = ring.view.explain("uid-of-web")?.containers ?? [];
    assert.deepEqual([init?.state, init?.reason, init?.exitCode, init?.ready], ["terminated", "Completed", 0, true]);
    assert.deepEqual([app?.state, app?.ready, app?.exitCode], ["running", true, undefined]);
    assert.equal(app?.image, "app:1");
    assert.match(app?.id ?? "", /^fake:\/\/container-/);
    assert.equal(app?.since, ring.clock.now().wall);
  });

  test("tell how the instance before the present one ended", async () => {
    const ring = new FakeRing();
    await ring.want(web);
    const [first] = await ring.containers();
    ring.runtime.exit(first?.id ?? "", 3);
    await ring.clock.advance(0);
    const [app] = ring.view.explain("uid-of-web")?.containers ?? [];
    assert.deepEqual([app?.state, app?.restarts, app?.exitCode], ["running", 1, 3]);
  });

  test("have the pod's own steps and events, and not those of others", async () => {
    const ring = new FakeRing();
    await ring.want(web, pod("other").container("side").build());
    const explained = ring.view.explain("uid-of-web");
    assert.deepEqual(
      explained?.steps.map(({ step }) => step),
      ["admitted", "sandbox", "create", "start"],
    );
    assert.equal(explained?.events.length, 3);
    assert.deepEqual([...new Set(explained?.events.map(({ pod: { name } }) => name))], ["web"]);
    assert.equal(ring.view.events(0).length, 6);
    const last = ring.view.events(0).at(-2)?.sequence ?? 0;
    assert.equal(ring.view.events(last).length, 1);
  });

  test("of a pod that nobody knows are none", () => {
    assert.equal(new FakeRing().view.explain("nobody"), undefined);
  });
});

describe("what others read", () => {
  test("/pods has each wanted pod as it was written, with the status of now", async () => {
    const ring = new FakeRing();
    await ring.want(web);
    const [shown] = ring.view.pods();
    assert.deepEqual(shown?.spec, web.spec);
    assert.equal(shown?.status?.phase, "Running");
  });

  test("logs are those of the newest instance, or of the one before it", async () => {
    const ring = new FakeRing();
    await ring.want(web);
    const path = (previous: boolean): string | undefined =>
      ring.view.logPath("uid-of-web", { container: "app", previous });
    assert.deepEqual([path(false), path(true)], ["/logs/default_web_uid-of-web/app/0.log", undefined]);
    const [first] = await ring.containers();
    ring.runtime.exit(first?.id ?? "", 1);
    await ring.clock.advance(0);
    const directory = "/logs/default_web_uid-of-web/app";
    assert.deepEqual([path(false), path(true)], [`${directory}/1.log`, `${directory}/0.log`]);
    assert.equal(ring.view.logPath("uid-of-web", { container: "other", previous: false }), undefined);
    assert.equal(ring.view.logPath("nobody", { container: "app", previous: false }), undefined);
  });

  test("changes are told with the pod's UID until nobody listens any more", async () => {
    const ring = new FakeRing();
    const told = new Set<string>();
    const listening = new AbortController();
    ring.view.onChange((uid) => void told.add(uid), { signal: listening.signal });
    await ring.want(web);
    assert.deepEqual([...told], ["uid-of-web"]);
    listening.abort();
    told.clear();
    await ring.want();
    assert.deepEqual([...told], []);
  });
});
