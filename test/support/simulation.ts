import assert from "node:assert/strict";
import { RuntimeError, type RuntimeEvent } from "../../src/adapters/runtime/port.ts";
import type { Pod, ResourceRequirements } from "../../src/model/generated/types.ts";
import { isTerminalPhase } from "../../src/pods/status/derive.ts";
import { pod } from "./pods.ts";
import { FakeRing } from "./ring.ts";

/** A small seeded generator (mulberry32): the same seed is the same life. */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}

const NAMES = ["alpha", "beta", "gamma"];
const POLICIES = ["Always", "OnFailure", "Never"] as const;
const FAULTY = [
  "runSandbox",
  "createContainer",
  "startContainer",
  "stopContainer",
  "removeContainer",
  "stopSandbox",
  "updateContainerResources",
  "updateSandboxResources",
] as const;
/** An exit with 42 restarts all containers of a pod that has these rules. */
const TOGETHER = [{ action: "RestartAllContainers", exitCodes: { operator: "In", values: [42] } }];
const SLOW = ["runSandbox", "createContainer", "startContainer", "pullImage", "listContainers"] as const;

/**
 * One random life of the ring: pods come and go, containers crash, calls fail or their answers are lost, events are
 * lost, doubled and late, the runtime goes away, the agent is killed. After every step the invariants must hold, and
 * once the faults stop, what is wanted and what is there must meet.
 */
export class Simulation {
  private readonly random: () => number;
  private readonly ring: FakeRing;
  private wanted: readonly Pod[] = [];
  private readonly final = new Map<string, string>();
  private readonly log: string[] = [];
  private isFaulty = true;

  constructor(seed: number) {
    this.random = seededRandom(seed);
    this.ring = new FakeRing(
      { job: { exitAfterMs: 3000, exitCode: 0 }, flaky: { exitAfterMs: 5000, exitCode: 1 }, app: { termMs: 100 } },
      { events: (event) => this.disturb(event) },
    );
    for (const image of ["app:1", "app:2", "job:1", "flaky:1", "init:1"]) this.ring.runtime.image(image);
    this.ring.runtime.program("init", { exitAfterMs: 500 });
    this.ring.prepareVolumes = (_pod, signal) => this.makeVolumes(signal);
  }

  async run(steps: number): Promise<void> {
    try {
      for (let i = 0; i < steps; i++) {
        await this.step();
        await this.ring.clock.advance(this.pick([0, 10, 300, 2000, 15_000]));
        this.check();
      }
      await this.calm();
    } catch (error) {
      const what = error instanceof Error ? error.message : String(error);
      throw new Error(`${what}\n  ${this.log.join("\n  ")}`, { cause: error });
    } finally {
      this.ring.stopAgent();
      await this.ring.clock.advance(0);
    }
  }

  private async step(): Promise<void> {
    const roll = this.random();
    if (roll < 0.3) return this.rewant();
    if (roll < 0.5) return this.crashOne();
    if (roll < 0.55) return this.killSandbox();
    if (roll < 0.7) return this.breakCalls();
    if (roll < 0.78) return this.slowDown();
    if (roll < 0.85) return this.toggleRuntime();
    if (roll < 0.93) return this.restart();
    if (roll < 0.97) return this.resize();
    this.note("nothing");
  }

  /** Another set of pods: new ones, other versions, the same ones removed and back at once. */
  private rewant(): void {
    const gone = this.wanted.filter(() => this.random() < 0.3);
    if (gone.length > 0 && this.random() < 0.5) {
      this.ring.publish(...this.wanted.filter((one) => !gone.includes(one)));
    }
    this.wanted = NAMES.flatMap((name) => {
      const known = this.wanted.find(({ metadata }) => metadata.name === name);
      const roll = this.random();
      if (known !== undefined && roll < 0.5) return [known];
      return roll < 0.8 ? [this.inventPod(name)] : [];
    });
    this.note(`want ${this.wanted.map(({ metadata }) => metadata.uid).join(" ")}`);
    this.ring.publish(...this.wanted);
  }

  private inventPod(name: string): Pod {
    const version = Math.floor(this.random() * 3);
    const kind = this.pick(["app", "job", "flaky"]);
    const policy = this.pick(POLICIES);
    const extra = this.pick(["", "", "together", "debugged", "stored"]);
    const uid = [name, version, kind, policy, extra].filter((part) => part !== "").join("-");
    const builder = pod(name, uid).fromFile().restart(policy);
    if (version === 2) builder.init("init");
    if (extra === "stored") builder.with({ volumes: [{ name: "data", emptyDir: {} }] });
    if (extra === "debugged") builder.with({ ephemeralContainers: [{ name: "debug", image: "app:1" }] });
    const together = extra === "together" ? { restartPolicy: policy, restartPolicyRules: TOGETHER } : {};
    return builder
      .container(kind, { resources: this.resources(), ...together })
      .with({ terminationGracePeriodSeconds: 3 })
      .build();
  }

  /** Volumes that take their time, fail, or were not at hand after all. */
  private async makeVolumes(signal: AbortSignal): Promise<void> {
    this.ring.volumesAtHand = !this.isFaulty || this.random() < 0.7;
    if (!this.isFaulty) return;
    await this.ring.clock.sleep(this.pick([0, 20, 400, 6000]), { signal });
    if (this.random() < 0.2) throw new Error("the volume cannot be made");
  }

  private resources(): ResourceRequirements {
    return { requests: { cpu: this.pick(["100m", "200m", "500m"]) } };
  }

  /** The same pods with other requests, which must not restart anything. */
  private resize(): void {
    this.wanted = this.wanted.map((one) => ({
      ...one,
      spec: {
        ...one.spec,
        containers: one.spec.containers.map((container) => ({ ...container, resources: this.resources() })),
      },
    }));
    this.note("other requests");
    this.ring.publish(...this.wanted);
  }

  private crashOne(): void {
    const running = this.containers().filter(({ state }) => state === "running");
    const victim = running[Math.floor(this.random() * running.length)];
    if (victim === undefined) return;
    const code = this.pick([0, 1, 42, 137]);
    this.note(`${victim.id} of ${victim.uid} exits with ${code}`);
    this.ring.runtime.exit(victim.id, code);
  }

  private killSandbox(): void {
    const ready = this.sandboxes().filter(({ state }) => state === "ready");
    const victim = ready[Math.floor(this.random() * ready.length)];
    if (victim === undefined) return;
    this.note(`${victim.id} of ${victim.uid} dies`);
    this.ring.runtime.killSandbox(victim.id);
  }

  private breakCalls(): void {
    const method = this.pick(FAULTY);
    const times = this.pick([1, 2, 5]);
    const isLost = this.random() < 0.4;
    this.note(`${method} fails ${times} times${isLost ? " after its work" : ""}`);
    const error = new RuntimeError(this.pick(["Unknown", "Unavailable", "Timeout"]), "simulated");
    if (isLost) this.ring.runtime.control.failAfterwards(method, error, times);
    else this.ring.runtime.control.fail(method, error, times);
  }

  private slowDown(): void {
    const method = this.pick(SLOW);
    const ms = this.pick([0, 50, 2000]);
    this.note(`${method} takes ${ms} ms`);
    this.ring.runtime.control.delay(method, ms);
  }

  private toggleRuntime(): void {
    const { control } = this.ring.runtime;
    this.note(control.isAway ? "runtime back" : "runtime away");
    if (control.isAway) this.ring.runtime.comeBack();
    else this.ring.runtime.goAway(this.random() < 0.2 ? "lost" : "go on");
  }

  private async restart(): Promise<void> {
    this.note("agent killed and started");
    this.final.clear();
    // The manifests may be read before the runtime answers, and may have changed while no agent ran.
    await this.ring.restartAgent({ isListed: this.random() < 0.5 });
    if (this.random() < 0.4) this.rewant();
    else this.ring.publish(...this.wanted);
  }

  /** Events may be lost, doubled or late; the answer is when each copy arrives, in milliseconds. */
  private disturb(_event: RuntimeEvent): readonly number[] {
    if (!this.isFaulty) return [0];
    const roll = this.random();
    if (roll < 0.15) return [];
    if (roll < 0.3) return [0, 200];
    return roll < 0.45 ? [this.pick([5, 500, 4000])] : [0];
  }

  /** What must hold at every moment. */
  private check(): void {
    const running = this.containers().filter(({ state }) => state === "running");
    const seen = new Map<string, string>();
    for (const { id, uid, name } of running) {
      const key = `${uid}/${name}`;
      assert.equal(seen.get(key), undefined, `${key} runs twice: ${seen.get(key)} and ${id}`);
      seen.set(key, id);
    }
    const owners = new Map<string, string>();
    for (const { uid, podName, state } of this.sandboxes()) {
      if (state !== "ready") continue;
      const other = owners.get(podName);
      assert.ok(other === undefined || other === uid, `two versions of ${podName} run: ${other} and ${uid}`);
      owners.set(podName, uid);
    }
    for (const { metadata } of this.wanted) {
      const uid = metadata.uid ?? "";
      const phase = this.ring.pool.status(uid)?.phase;
      const before = this.final.get(uid);
      const isSame = this.ring.pool.worker(uid)?.isStopping !== true;
      if (
        before !== undefined &&
        phase !== undefined &&
        isSame &&
        this.finalWorker.get(uid) === this.ring.pool.worker(uid)
      ) {
        assert.equal(phase, before, `the final phase of ${uid} changed`);
      }
      if (phase !== undefined && isTerminalPhase(phase)) {
        this.final.set(uid, phase);
        this.finalWorker.set(uid, this.ring.pool.worker(uid));
      }
    }
  }

  private readonly finalWorker = new Map<string, unknown>();

  /** The faults stop; the audit and the longest back-off pass; then all is as it should be. */
  private async calm(): Promise<void> {
    const { runtime } = this.ring;
    this.isFaulty = false;
    for (const method of SLOW) runtime.control.delay(method, 0);
    runtime.control.heal();
    if (runtime.control.isAway) runtime.comeBack();
    for (let i = 0; i < 8; i++) {
      await this.ring.clock.advance(120_000);
      this.check();
    }
    const wanted = new Set(this.wanted.map(({ metadata }) => metadata.uid));
    for (const { uid } of this.sandboxes()) assert.ok(wanted.has(uid), `${uid} is still there`);
    for (const one of this.wanted) {
      const uid = one.metadata.uid ?? "";
      const phase = this.ring.pool.status(uid)?.phase;
      this.checkLimits(one);
      const name = one.spec.containers[0]?.name;
      const isUp = name === "app" && one.spec.restartPolicy === "Always";
      if (isUp) assert.equal(phase, "Running", `${uid} should run`);
      else assert.ok(phase !== undefined && phase !== "Pending", `${uid} is ${phase}`);
    }
  }

  /** Once all is calm, what runs has the limits that are asked for. */
  private checkLimits({ metadata, spec }: Pod): void {
    for (const { id, name, state, uid } of this.containers()) {
      const container = spec.containers.find((one) => one.name === name);
      if (uid !== metadata.uid || state !== "running" || container === undefined) continue;
      const shares = Math.floor((Number(container.resources?.requests?.["cpu"]?.replace("m", "")) * 1024) / 1000);
      assert.equal(this.ring.runtime.limitsOf(id)?.cpuShares, shares, `${id} of ${uid} has other limits`);
    }
  }

  private containers(): { id: string; name: string; uid: string; state: string }[] {
    return this.ring.runtime.peek().containers.map(({ id, name, state, labels }) => ({
      id,
      name,
      state,
      uid: labels["io.kubernetes.pod.uid"] ?? "",
    }));
  }

  private sandboxes(): { id: string; uid: string; podName: string; state: string }[] {
    return this.ring.runtime
      .peek()
      .sandboxes.map(({ id, metadata, state }) => ({ id, uid: metadata.uid, podName: metadata.name, state }));
  }

  private pick<T>(from: readonly T[]): T {
    const picked = from[Math.floor(this.random() * from.length)];
    if (picked === undefined) throw new Error("nothing to pick from");
    return picked;
  }

  private note(text: string): void {
    this.log.push(`${Math.round(this.ring.clock.now().mono)} ms: ${text}`);
  }
}
