import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { LIMITS } from "../../../test/support/limits.ts";
import { pod } from "../../../test/support/pods.ts";
import { FakeRuntime } from "../../adapters/runtime/fake.ts";
import type { FakeMethod } from "../../adapters/runtime/fake-control.ts";
import { type ContainerStatus, RuntimeError, type RuntimeEvent } from "../../adapters/runtime/port.ts";
import { type Abortable, manyListeners } from "../../lib/abort.ts";
import { FakeClock } from "../../lib/clock.ts";
import { LiveValue } from "../../lib/live.ts";
import { silent } from "../../lib/log.ts";
import { containerHash } from "../../model/container-hash.ts";
import type { ObservedPod } from "../../model/observed.ts";
import { containerAnnotations } from "../config/container-annotations.ts";
import { containerConfig } from "../config/container-config.ts";
import { sandboxConfig } from "../config/sandbox-config.ts";
import { type ListedPod, Observer } from "./observe.ts";
import type { ExecutorRuntime } from "./recording-runtime.ts";

const AUDIT_MS = 300_000;
const web = pod("web").container("app").build();
const identity = { uid: "uid-of-web", name: "web", namespace: "default" };
const image = { id: "sha256:1", tags: [], digests: [], sizeBytes: 1, username: "", pinned: false };

/** An observer on the fake runtime, whose events can be silenced or robbed of what they tell. */
class Watching {
  readonly clock = new FakeClock();
  readonly runtime = new FakeRuntime({ clock: this.clock });
  readonly stop = manyListeners();
  readonly woken: string[] = [];
  readonly missed: string[] = [];
  readonly lists: ReadonlyMap<string, ListedPod>[] = [];
  readonly asked: string[] = [];
  readonly errors: string[] = [];
  readonly auditEvery = new LiveValue(AUDIT_MS);
  readonly observer: Observer;
  /** The runtime as the executors have it. */
  readonly executors: ExecutorRuntime;
  /** Resolves when the observer has ended. */
  running: Promise<void> = Promise.resolve();
  /** Which events get through, and as what. */
  pass: (event: RuntimeEvent) => RuntimeEvent | undefined = (event) => event;
  /** What status calls answer otherwise than the runtime. */
  corrections: Partial<ContainerStatus> = {};
  private readonly extra: RuntimeEvent[] = [];

  constructor() {
    const { runtime } = this;
    const ports = {
      listSandboxes: runtime.listSandboxes.bind(runtime),
      listContainers: runtime.listContainers.bind(runtime),
      sandboxStatus: runtime.sandboxStatus.bind(runtime),
      containerStatus: async (id: string, options: Abortable) => ({
        ...(await runtime.containerStatus(id, options)),
        ...this.corrections,
      }),
      eventSource: "cri" as const,
      events: (options: Abortable) => this.events(options),
    };
    const log = { ...silent, error: (message: string) => void this.errors.push(message) };
    this.observer = new Observer(
      { runtime: ports, clock: this.clock, log },
      {
        wake: (uid) => void this.woken.push(uid),
        listed: (pods) => void this.lists.push(pods),
        missed: (uid) => void this.missed.push(uid),
        endMessage: (container) => {
          this.asked.push(container.id);
          return Promise.resolve(`${container.name} said bye`);
        },
      },
      this.auditEvery,
    );
    this.executors = this.observer.recording(runtime);
  }

  get options(): Abortable {
    return { signal: this.stop.signal };
  }

  read(): Promise<ObservedPod> {
    return this.observer.read(identity, this.options);
  }

  /** Runs the observer, and lets it make its first list. */
  async run(): Promise<void> {
    this.running = this.observer.run(this.stop.signal);
    await this.clock.advance(0);
  }

  /** By somebody else than the agent, unless it is made through `executors`. */
  async sandbox(attempt = 0, runtime: ExecutorRuntime = this.runtime): Promise<string> {
    const config = sandboxConfig(web, {
      attempt,
      paths: { rootDir: "/r", podLogsDir: "/l", containerLogsDir: "/c" },
      cgroupParent: "/k",
      dns: { servers: [], searches: [], options: [] },
      clusterDomain: "",
      limits: LIMITS,
      owner: "me",
    });
    return runtime.runSandbox(config, "", this.options);
  }

  async container(sandboxId: string, attempt = 0, runtime: ExecutorRuntime = this.runtime): Promise<string> {
    this.runtime.image("app:1");
    const present = await this.runtime.imageStatus("app:1", this.options);
    const [container = { name: "" }] = web.spec.containers;
    const config = containerConfig(web, container, {
      attempt,
      image: present ?? image,
      imageRef: present?.id ?? "",
      seccompRoot: "",
      envs: [],
      mounts: [],
      devices: [],
      cdiDevices: [],
      resources: {},
      extraMaskedPaths: [],
      annotations: containerAnnotations({ pod: web, container, attempt }),
      seccompDefault: false,
    });
    const sandbox = sandboxConfig(web, {
      attempt: 0,
      paths: { rootDir: "/r", podLogsDir: "/l", containerLogsDir: "/c" },
      cgroupParent: "/k",
      dns: { servers: [], searches: [], options: [] },
      clusterDomain: "",
      limits: LIMITS,
    });
    const id = await runtime.createContainer({ sandboxId, config, sandbox }, this.options);
    await runtime.startContainer(id, this.options);
    return id;
  }

  /** An event that the runtime never sent. */
  async tell(type: "created" | "started" | "stopped" | "deleted" | "oom", id: string): Promise<void> {
    this.extra.push({ kind: "container", type, id, at: 0 });
    // Any event of the runtime brings it along.
    this.runtime.comeBack();
    await this.clock.advance(0);
  }

  private async *events(options: Abortable): AsyncGenerator<RuntimeEvent> {
    for await (const event of this.runtime.events(options)) {
      const extra = this.extra.splice(0);
      yield* extra;
      const passed = extra.length > 0 ? undefined : this.pass(event);
      if (passed !== undefined) yield passed;
    }
  }
}

const anonymous = (event: RuntimeEvent): RuntimeEvent => {
  if (event.kind === "resync") return event;
  const { kind, type, id, at } = event;
  return { kind, type, id, at };
};
const silenced = (event: RuntimeEvent): RuntimeEvent | undefined => (event.kind === "resync" ? event : undefined);

describe("reading a pod", () => {
  test("gives all of it, newest first", async () => {
    const watching = new Watching();
    const old = await watching.sandbox(0);
    await watching.clock.advance(1000);
    const sandbox = await watching.sandbox(1);
    const first = await watching.container(sandbox, 0);
    watching.runtime.exit(first, 3);
    await watching.clock.advance(1000);
    const second = await watching.container(sandbox, 1);
    const observed = await watching.read();
    assert.deepEqual(
      observed.sandboxes.map(({ id, attempt }) => [id, attempt]),
      [
        [sandbox, 1],
        [old, 0],
      ],
    );
    assert.deepEqual(
      observed.containers.map(({ id, state, exitCode, sandboxId }) => [id, state, exitCode, sandboxId]),
      [
        [second, "running", 0, sandbox],
        [first, "exited", 3, sandbox],
      ],
    );
    assert.equal(observed.containers[0]?.hash, containerHash({ name: "app", image: "app:1" }));
    assert.equal(watching.observer.get("uid-of-web"), observed);
  });

  test("a pod that the runtime does not have is empty, not an error", async () => {
    const observed = await new Watching().read();
    assert.deepEqual([observed.sandboxes, observed.containers], [[], []]);
  });

  test("a container that vanishes meanwhile is left out", async () => {
    const watching = new Watching();
    await watching.container(await watching.sandbox());
    watching.runtime.control.fail("containerStatus", new RuntimeError("NotFound", "gone"));
    const observed = await watching.read();
    assert.deepEqual([observed.sandboxes.length, observed.containers.length], [1, 0]);
  });

  test("any other fault is the reader's, and leaves what was known", async () => {
    const watching = new Watching();
    await watching.container(await watching.sandbox());
    const before = await watching.read();
    watching.runtime.control.fail("containerStatus", new RuntimeError("Unavailable", "away"));
    await assert.rejects(watching.read(), /away/);
    assert.equal(watching.observer.get("uid-of-web"), before);
  });

  test("an ended container's status and message are asked for once", async () => {
    const watching = new Watching();
    const id = await watching.container(await watching.sandbox());
    await watching.read();
    await watching.read();
    assert.equal(watching.runtime.control.count("containerStatus"), 2);
    watching.runtime.exit(id, 1);
    const ended = await watching.read();
    const again = await watching.read();
    assert.equal(watching.runtime.control.count("containerStatus"), 3);
    assert.deepEqual(watching.asked, [id]);
    assert.equal(ended.containers[0]?.message, "app said bye");
    assert.deepEqual(again.containers, ended.containers);
  });

  test("a running container has no message to be asked for", async () => {
    const watching = new Watching();
    await watching.container(await watching.sandbox());
    await watching.read();
    assert.deepEqual(watching.asked, []);
  });

  test("an answer that began earlier never replaces one that began later", async () => {
    const watching = new Watching();
    const id = await watching.container(await watching.sandbox());
    watching.runtime.control.delay("sandboxStatus", 1000);
    const slow = watching.read();
    await watching.clock.advance(10);
    watching.runtime.exit(id, 1);
    watching.runtime.control.delay("sandboxStatus", 0);
    const quick = await watching.read();
    await watching.clock.advance(1000);
    // Whoever asked gets what was found, but nobody else does.
    assert.equal((await slow).containers[0]?.state, "running");
    assert.equal(watching.observer.get("uid-of-web"), quick);
    assert.equal(quick.containers[0]?.state, "exited");
  });

  test("a pod that was evicted is not known any more", async () => {
    const watching = new Watching();
    await watching.container(await watching.sandbox());
    await watching.read();
    watching.observer.evict("uid-of-web");
    assert.equal(watching.observer.get("uid-of-web"), undefined);
    assert.deepEqual(watching.observer.list(), []);
  });
});

describe("the exit of a container", () => {
  test("is read again, with its message, until the runtime has settled it", async () => {
    const watching = new Watching();
    const id = await watching.container(await watching.sandbox());
    await watching.run();
    watching.corrections = { state: "exited", exitCode: 137, reason: "Error", isProvisional: true };
    assert.equal((await watching.read()).containers[0]?.reason, "Error");
    watching.corrections = {};
    watching.pass = silenced;
    watching.runtime.exit(id, 137, "OOMKilled");
    await watching.tell("stopped", id);
    assert.deepEqual(watching.woken, ["uid-of-web"]);
    assert.equal((await watching.read()).containers[0]?.reason, "OOMKilled");
    assert.deepEqual(watching.asked, [id, id]);
    await watching.tell("stopped", id);
    assert.deepEqual(watching.woken, ["uid-of-web"]);
    await watching.read();
    assert.deepEqual(watching.asked, [id, id]);
  });

  test("is read again when a kill for memory is reported later", async () => {
    const watching = new Watching();
    const id = await watching.container(await watching.sandbox());
    watching.runtime.exit(id, 137);
    await watching.run();
    assert.equal((await watching.read()).containers[0]?.reason, "Error");
    watching.corrections = { reason: "OOMKilled" };
    await watching.tell("oom", id);
    assert.deepEqual(watching.woken, ["uid-of-web"]);
    assert.equal((await watching.read()).containers[0]?.reason, "OOMKilled");
    const calls = watching.runtime.control.count("containerStatus");
    await watching.read();
    assert.equal(watching.runtime.control.count("containerStatus"), calls);
  });
});

describe("a read lists", () => {
  const lists = ({ runtime }: Watching): number => runtime.control.count("listContainers");

  test("nothing of a pod that the runtime was seen not to have", async () => {
    const watching = new Watching();
    await watching.run();
    const before = watching.runtime.control.calls.length;
    assert.deepEqual((await watching.read()).containers, []);
    assert.equal(watching.runtime.control.calls.length, before);
  });

  test("once, and then asks for what is known and for what the executors created", async () => {
    const watching = new Watching();
    const sandbox = await watching.sandbox();
    const first = await watching.container(sandbox);
    await watching.read();
    assert.equal(lists(watching), 1);
    const second = await watching.container(sandbox, 1, watching.executors);
    assert.deepEqual((await watching.read()).containers.map(({ id }) => id).sort(), [first, second].sort());
    assert.equal(lists(watching), 1);
  });

  test("nothing after a container or a sandbox was removed", async () => {
    const watching = new Watching();
    await watching.run();
    const sandbox = await watching.sandbox(0, watching.executors);
    const first = await watching.container(sandbox, 0, watching.executors);
    await watching.container(sandbox, 1, watching.executors);
    await watching.executors.removeContainer(first, watching.options);
    const before = lists(watching);
    assert.equal((await watching.read()).containers.length, 1);
    await watching.executors.removeSandbox(sandbox, watching.options);
    const { containers, sandboxes } = await watching.read();
    assert.deepEqual([containers, sandboxes, lists(watching)], [[], [], before]);
  });

  const unavailable = new RuntimeError("Unavailable", "away");
  const failures: { method: FakeMethod; call(watching: Watching, ids: Ids): Promise<unknown> }[] = [
    { method: "runSandbox", call: (watching) => watching.sandbox(1, watching.executors) },
    { method: "createContainer", call: (watching, { sandbox }) => watching.container(sandbox, 1, watching.executors) },
    { method: "startContainer", call: (watching, { sandbox }) => watching.container(sandbox, 1, watching.executors) },
    { method: "stopContainer", call: ({ executors, options }, { app }) => executors.stopContainer(app, 1, options) },
    { method: "removeContainer", call: ({ executors, options }, { app }) => executors.removeContainer(app, options) },
    { method: "stopSandbox", call: ({ executors, options }, { sandbox }) => executors.stopSandbox(sandbox, options) },
    {
      method: "removeSandbox",
      call: ({ executors, options }, { sandbox }) => executors.removeSandbox(sandbox, options),
    },
  ];
  for (const { method, call } of failures) {
    test(`again after a failed ${method}, which may have been carried out all the same`, async () => {
      const watching = new Watching();
      const sandbox = await watching.sandbox(0, watching.executors);
      const app = await watching.container(sandbox, 0, watching.executors);
      await watching.read();
      const before = lists(watching);
      watching.runtime.control.failAfterwards(method, unavailable);
      await Promise.all([assert.rejects(call(watching, { sandbox, app })), watching.clock.advance(0)]);
      const { containers, sandboxes } = await watching.read();
      assert.equal(lists(watching), before + 1);
      const present = await watching.runtime.listContainers({}, watching.options);
      assert.deepEqual(containers.map(({ id }) => id).sort(), present.map(({ id }) => id).sort());
      assert.equal(sandboxes.length, (await watching.runtime.listSandboxes({}, watching.options)).length);
    });
  }

  test("again after somebody else removed a container", async () => {
    const watching = new Watching();
    const app = await watching.container(await watching.sandbox());
    await watching.run();
    await watching.read();
    const before = lists(watching);
    await watching.runtime.removeContainer(app, watching.options);
    await watching.clock.advance(0);
    assert.deepEqual((await watching.read()).containers, []);
    assert.equal(lists(watching), before + 1);
  });
});

interface Ids {
  readonly sandbox: string;
  readonly app: string;
}

describe("an evicted pod leaves nothing behind", () => {
  test("when a read of it ends later", async () => {
    const watching = new Watching();
    await watching.container(await watching.sandbox());
    watching.runtime.control.delay("containerStatus", 100);
    const reading = watching.read();
    await watching.clock.advance(50);
    watching.observer.evict("uid-of-web");
    await watching.clock.advance(50);
    await reading;
    assert.deepEqual(watching.observer.list(), []);
  });

  test("when events about its parts come later, or its parts were never read", async () => {
    const watching = new Watching();
    await watching.run();
    const sandbox = await watching.sandbox(0, watching.executors);
    const app = await watching.container(sandbox, 0, watching.executors);
    await watching.executors.removeSandbox(sandbox, watching.options);
    watching.observer.evict("uid-of-web");
    watching.woken.length = 0;
    for (const id of [app, sandbox]) for (const type of ["started", "deleted"] as const) await watching.tell(type, id);
    assert.deepEqual(watching.woken, []);
    const calls = watching.runtime.control.calls.length;
    assert.deepEqual((await watching.read()).containers, []);
    assert.equal(watching.runtime.control.calls.length, calls);
  });
});

describe("events", () => {
  test("wake the pod that they are about", async () => {
    const watching = new Watching();
    const id = await watching.container(await watching.sandbox());
    await watching.run();
    watching.runtime.exit(id, 1);
    await watching.clock.advance(0);
    assert.deepEqual(watching.woken, ["uid-of-web"]);
  });

  test("that do not tell the pod are known by the list, without a further call", async () => {
    const watching = new Watching();
    watching.pass = anonymous;
    const id = await watching.container(await watching.sandbox());
    await watching.run();
    const calls = watching.runtime.control.calls.length;
    watching.runtime.exit(id, 1);
    await watching.clock.advance(0);
    assert.deepEqual(watching.woken, ["uid-of-web"]);
    assert.equal(watching.runtime.control.calls.length, calls);
  });

  test("about a sandbox are known in the same way", async () => {
    const watching = new Watching();
    watching.pass = anonymous;
    const sandbox = await watching.sandbox();
    await watching.run();
    watching.runtime.killSandbox(sandbox);
    await watching.clock.advance(0);
    assert.deepEqual(watching.woken, ["uid-of-web"]);
  });

  test("about what was only just made are known by whoever made it", async () => {
    const watching = new Watching();
    await watching.run();
    watching.pass = silenced;
    const id = await watching.container(await watching.sandbox(0, watching.executors), 0, watching.executors);
    await watching.tell("stopped", id);
    assert.deepEqual(watching.woken, ["uid-of-web"]);
    assert.equal(watching.runtime.control.count("listContainers"), 1);
  });

  test("about a start of the agent's own wake nobody until it was read, its end does", async () => {
    const watching = new Watching();
    watching.pass = silenced;
    await watching.run();
    const sandbox = await watching.sandbox(0, watching.executors);
    const id = await watching.container(sandbox, 0, watching.executors);
    await watching.tell("started", id);
    assert.deepEqual(watching.woken, []);
    await watching.tell("stopped", id);
    assert.deepEqual(watching.woken, ["uid-of-web"]);
  });

  test("that tell what was read already wake nobody, others do", async () => {
    const watching = new Watching();
    await watching.run();
    const sandbox = await watching.sandbox(0, watching.executors);
    const id = await watching.container(sandbox, 0, watching.executors);
    assert.equal((await watching.read()).containers[0]?.state, "running");
    await watching.clock.advance(0);
    watching.woken.length = 0;
    for (const type of ["created", "started"] as const) await watching.tell(type, id);
    await watching.tell("started", sandbox);
    assert.deepEqual(watching.woken, []);
    for (const type of ["deleted", "oom", "stopped"] as const) {
      await watching.tell(type, id);
      assert.deepEqual(watching.woken.splice(0), ["uid-of-web"], type);
    }
  });

  test("about the end of a container that nobody told of are looked up", async () => {
    const watching = new Watching();
    await watching.run();
    watching.pass = (event) => (event.kind === "container" && event.type === "stopped" ? anonymous(event) : undefined);
    const id = await watching.container(await watching.sandbox());
    watching.runtime.exit(id, 1);
    await watching.clock.advance(0);
    assert.deepEqual(watching.woken, ["uid-of-web"]);
    assert.equal(
      watching.runtime.control.calls.filter(({ subject }) => subject === id).at(-1)?.method,
      "listContainers",
    );
  });

  for (const type of ["created", "started", "deleted"] as const) {
    test(`of the type ${type} about an unknown id wake nobody and cost no call`, async () => {
      const watching = new Watching();
      await watching.run();
      const calls = watching.runtime.control.calls.length;
      await watching.tell(type, "unknown");
      assert.deepEqual(watching.woken, []);
      assert.equal(watching.runtime.control.calls.length, calls);
    });
  }

  test("about an id that the runtime does not have, or cannot look up, wake nobody and do no harm", async () => {
    const watching = new Watching();
    await watching.run();
    await watching.tell("stopped", "unknown");
    watching.runtime.control.fail("listContainers", new RuntimeError("Unavailable", "away"));
    await watching.tell("oom", "unknown");
    assert.deepEqual(watching.woken, []);
    const id = await watching.container(await watching.sandbox());
    await watching.clock.advance(0);
    watching.woken.length = 0;
    watching.runtime.exit(id, 1);
    await watching.clock.advance(0);
    assert.deepEqual(watching.woken, ["uid-of-web"]);
  });

  test("end with the agent", async () => {
    const watching = new Watching();
    await watching.run();
    watching.stop.abort();
    await watching.running;
  });
});

describe("a (re)connection", () => {
  test("lists everything: each pod with who it is and whose", async () => {
    const watching = new Watching();
    await watching.sandbox();
    await watching.run();
    const [pods] = watching.lists;
    assert.deepEqual([...(pods?.keys() ?? [])], ["uid-of-web"]);
    const listed = pods?.get("uid-of-web");
    assert.deepEqual([listed?.name, listed?.namespace], ["web", "default"]);
    assert.deepEqual(listed?.annotations, { "kubelet-ts/owner": "me" });
    watching.runtime.goAway();
    watching.runtime.comeBack();
    await watching.clock.advance(0);
    assert.equal(watching.lists.length, 2);
  });

  test("lists again and again until it succeeds: what happened meanwhile is not known otherwise", async () => {
    const watching = new Watching();
    watching.runtime.control.fail("listSandboxes", new RuntimeError("Timeout", "slow"), 2);
    await watching.run();
    assert.equal(watching.lists.length, 0);
    await watching.clock.advance(500);
    assert.equal(watching.lists.length, 0);
    await watching.clock.advance(1000);
    assert.equal(watching.lists.length, 1);
    assert.equal(watching.errors.length, 2);
  });

  test("the end of the agent ends the trying", async () => {
    const watching = new Watching();
    watching.runtime.control.fail("listSandboxes", new RuntimeError("Timeout", "slow"), 100);
    await watching.run();
    watching.stop.abort();
    await watching.running;
    assert.equal(watching.clock.waiting, 0);
  });

  test("drops ids that are gone, but not one that was created while the list was made", async () => {
    const watching = new Watching();
    await watching.run();
    watching.pass = silenced;
    const gone = await watching.sandbox(0, watching.executors);
    await watching.runtime.removeSandbox(gone, watching.options);
    watching.runtime.control.delay("listContainers", 100);
    watching.runtime.comeBack();
    await watching.clock.advance(50);
    const created = await watching.sandbox(1, watching.executors);
    await watching.clock.advance(50);
    await watching.tell("started", gone);
    assert.deepEqual(watching.woken, []);
    await watching.tell("stopped", created);
    assert.deepEqual(watching.woken, ["uid-of-web"]);
  });
});

describe("the audit", () => {
  test("comes as often as is configured, also when that changes meanwhile", async () => {
    const watching = new Watching();
    await watching.run();
    await watching.clock.advance(60_000);
    watching.auditEvery.set(90_000);
    await watching.clock.advance(29_999);
    assert.equal(watching.lists.length, 1);
    await watching.clock.advance(1);
    assert.equal(watching.lists.length, 2);
  });

  test("lists, and finds nothing when the events told everything", async () => {
    const watching = new Watching();
    await watching.container(await watching.sandbox());
    await watching.run();
    await watching.read();
    await watching.clock.advance(AUDIT_MS - 1);
    assert.equal(watching.lists.length, 1);
    await watching.clock.advance(1);
    assert.equal(watching.lists.length, 2);
    assert.deepEqual(watching.missed, []);
  });

  const changes: { name: string; change(watching: Watching, ids: { sandbox: string; app: string }): unknown }[] = [
    { name: "an ended container", change: ({ runtime }, { app }) => runtime.exit(app, 1) },
    { name: "a dead sandbox", change: ({ runtime }, { sandbox }) => runtime.killSandbox(sandbox) },
    { name: "a removed container", change: ({ runtime, options }, { app }) => runtime.removeContainer(app, options) },
    { name: "a container that somebody made", change: (watching, { sandbox }) => watching.container(sandbox, 1) },
  ];
  for (const { name, change } of changes) {
    test(`counts ${name} that no event told of, once, and then knows it`, async () => {
      const watching = new Watching();
      const sandbox = await watching.sandbox();
      const app = await watching.container(sandbox);
      await watching.run();
      await watching.read();
      watching.pass = silenced;
      await change(watching, { sandbox, app });
      await watching.clock.advance(AUDIT_MS + 1000);
      assert.deepEqual(watching.missed, ["uid-of-web"]);
      assert.equal(watching.lists.length, 2);
      await watching.clock.advance(2 * AUDIT_MS);
      assert.deepEqual(watching.missed, ["uid-of-web"]);
    });
  }

  test("does not count what is only just happening: whoever hears of it within a second reads the pod", async () => {
    const watching = new Watching();
    const app = await watching.container(await watching.sandbox());
    await watching.run();
    await watching.read();
    await watching.clock.advance(AUDIT_MS - 1);
    watching.pass = silenced;
    watching.runtime.exit(app, 1);
    await watching.clock.advance(1);
    await watching.clock.advance(500);
    await watching.read();
    await watching.clock.advance(500);
    assert.deepEqual(watching.missed, []);
    assert.equal(watching.lists.length, 2);
  });

  test("lists, and reads the other pods, where the status of one cannot be read", async () => {
    const watching = new Watching();
    const app = await watching.container(await watching.sandbox());
    await watching.run();
    await watching.read();
    watching.pass = silenced;
    watching.runtime.exit(app, 1);
    watching.runtime.control.fail("containerStatus", new RuntimeError("Unknown", "shim is unreachable"));
    await watching.clock.advance(AUDIT_MS + 1000);
    assert.deepEqual(watching.errors, ["Failed to read pod for audit"]);
    assert.equal(watching.lists.length, 2);
  });

  test("goes on after one that failed", async () => {
    const watching = new Watching();
    await watching.run();
    watching.runtime.control.fail("listContainers", new RuntimeError("Unavailable", "away"));
    await watching.clock.advance(AUDIT_MS);
    assert.deepEqual([watching.lists.length, watching.errors.length], [1, 1]);
    await watching.clock.advance(AUDIT_MS);
    assert.equal(watching.lists.length, 2);
  });
});
