import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type MachineShape, machine } from "../../test/support/machine.ts";
import { asWrittenBy, CPU_FILE_FORMATS } from "../../test/support/old-cpu-states.ts";
import { pod } from "../../test/support/pods.ts";
import { chooseSeed, randomFrom } from "../../test/support/random.ts";
import { TopologyNode } from "../../test/support/topology-node.ts";
import { isSameSet, unionOf } from "../model/cpu-set.ts";
import type { Container, Pod } from "../model/generated/types.ts";
import type { ObservedPod } from "../model/observed.ts";

const PARTS = 8;
const WALKS = 5;
const STEPS = 250;
const CPU_FILE = "/root/cpu_manager_state";
const MI = 2 ** 20;
const RESERVED_MI = 300;

const SHAPES: readonly MachineShape[] = [
  { sockets: 2, nodes: 2, cores: 2 },
  { sockets: 2, cores: 4, offline: [1, 9, 12] },
  { sockets: 1, nodes: 2, caches: 2, cores: 2, threads: 1 },
];
const OPTIONS = [
  "full-pcpus-only",
  "distribute-cpus-across-numa",
  "distribute-cpus-across-cores",
  "prefer-align-cpus-by-uncorecache",
  "strict-cpu-reservation",
  "align-by-socket",
];
const POLICIES = ["none", "best-effort", "restricted"];
const FREE_RESIZES = "InPlacePodVerticalScalingExclusiveCPUs=true,InPlacePodVerticalScalingExclusiveMemory=true";

type Chance = (below: number) => number;

/** A node, its pods, and what may happen to them. */
class Walk {
  readonly node: TopologyNode;
  readonly present = new Map<string, Pod>();
  private readonly resizes: boolean;
  private readonly idle: string;

  constructor(private readonly chance: Chance) {
    const of = <T>(list: readonly T[]): T => list[chance(list.length)] as T; // reason: the list is not empty
    this.resizes = chance(2) === 0;
    const gates = `PodLevelResourceManagers=true${this.resizes ? `,${FREE_RESIZES}` : ""}`;
    const shape = { ...of(SHAPES), memoryBytes: 2048 * MI, hugePages: { [2 * MI]: 64 } };
    const flags = [
      "--cpu-manager-policy=static",
      `--cpu-manager-policy-options=${of(OPTIONS)}=true`,
      "--memory-manager-policy=Static",
      `--reserved-memory=0:memory=${RESERVED_MI}Mi`,
      `--topology-manager-policy=${of(POLICIES)}`,
      `--topology-manager-scope=${of(["container", "pod"])}`,
      `--feature-gates=CPUManagerPolicyAlphaOptions=true,${gates}`,
    ];
    this.node = new TopologyNode(machine(shape), flags, { cpus: 1, memoryMi: RESERVED_MI });
    this.idle = this.memory();
  }

  async step(): Promise<string> {
    const kind = this.chance(20);
    const name = String(this.chance(10));
    const held = this.present.get(`uid-of-${name}`);
    if (kind === 0) return await this.restart();
    if (kind === 1) return await this.reboot();
    if (kind === 2 && held !== undefined) return await this.loseRelease(held);
    if (kind === 3 && held === undefined) return await this.failWrite(this.podOf(name));
    if (kind < 8 && held !== undefined) return this.resize(held);
    if (held !== undefined) {
      this.node.remove(`uid-of-${name}`);
      this.present.delete(`uid-of-${name}`);
      return `remove ${name}`;
    }
    return await this.admit(this.podOf(name));
  }

  /** Every CPU and every byte belongs to exactly one owner. */
  check(what: string): void {
    const { cpus, memory } = this.node.topology;
    const all = new Set(this.node.machine.cpus.map(({ cpu }) => cpu));
    const strict = this.node.topology.cpus.reserved;
    const owned = [...cpus.state.holders()].map((uid) => {
      const parts = unionOf(...cpus.state.ofPod(uid).values());
      const whole = cpus.state.podEntries.get(uid);
      if (whole !== undefined) assert.ok(isSameSet(unionOf(whole, parts), whole), `${what}: container outside its pod`);
      return whole ?? parts;
    });
    const sum = owned.reduce((size, set) => size + set.size, cpus.state.shared.size);
    const union = unionOf(cpus.state.shared, ...owned);
    assert.equal(sum, union.size, `${what}: a CPU has two owners`);
    assert.ok(isSameSet(unionOf(union, strict), all), `${what}: a CPU has no owner`);
    for (const uid of [...cpus.state.holders(), ...memory.state.holders()]) assert.ok(this.present.has(uid), what);
    this.checkMemory(what);
  }

  /** Nothing is left when all pods are gone. */
  empty(): void {
    for (const uid of this.present.keys()) this.node.remove(uid);
    this.present.clear();
    this.check("the end");
    assert.equal(this.memory(), this.idle);
  }

  private checkMemory(what: string): void {
    const { state } = this.node.topology.memory;
    const reserved = new Map<string, number>();
    const blocks = [...state.holders()].flatMap(
      (uid) => state.podEntries.get(uid) ?? [...(state.entries.get(uid)?.values() ?? [])].flat(),
    );
    for (const { type, bytes } of blocks) reserved.set(type, (reserved.get(type) ?? 0) + bytes);
    for (const type of ["memory", "hugepages-2Mi"]) {
      const tables = [...state.nodes.values()].flatMap((node) => node.tables.get(type) ?? []);
      for (const table of tables) assert.equal(table.free + table.reserved, table.allocatable, what);
      const taken = tables.reduce((sum, table) => sum + table.reserved, 0);
      assert.equal(taken, reserved.get(type) ?? 0, `${what}: ${type} is reserved for nobody`);
    }
  }

  private memory(): string {
    return JSON.stringify([...this.node.topology.memory.state.nodes].map(([id, node]) => [id, [...node.tables], node]));
  }

  private async admit(asked: Pod): Promise<string> {
    const { uid = "" } = asked.metadata;
    const rejection = await this.node.admit(asked);
    if (rejection === undefined) this.present.set(uid, asked);
    else this.present.delete(uid);
    return `admit ${uid}: ${rejection?.reason ?? "admitted"}`;
  }

  /** Another agent, which finds the file as some release of Kubernetes wrote it. */
  private async restart(leftOver: readonly Pod[] = []): Promise<string> {
    const { node } = this;
    await node.clock.advance(0);
    node.observed.splice(0, node.observed.length, ...[...this.present.values(), ...leftOver].map(observed));
    const format = CPU_FILE_FORMATS[this.chance(CPU_FILE_FORMATS.length)] ?? "same";
    node.files.set(
      CPU_FILE,
      asWrittenBy(format, node.files.get(CPU_FILE) ?? "", (uid, name) => `${uid}/${name}`),
    );
    node.start();
    assert.doesNotMatch(node.warnings.join(), /lost count/);
    this.releaseOthers();
    return `restart on a file of the format ${format}`;
  }

  /** All pods are admitted again, with what they were resized to meanwhile. */
  private async reboot(): Promise<string> {
    await this.restart();
    const said = [];
    for (const each of [...this.present.values()]) said.push(await this.admit(each));
    return `reboot, ${said.join(", ")}`;
  }

  /** The agent ends before it has written that a pod is gone. */
  private async loseRelease(removed: Pod): Promise<string> {
    const { uid = "" } = removed.metadata;
    await this.node.clock.advance(0);
    this.node.fault = new Error("no space left on device");
    this.node.remove(uid);
    await this.node.clock.advance(0);
    this.node.fault = undefined;
    this.present.delete(uid);
    return `lost release of ${uid}, ${await this.restart([removed])}`;
  }

  private async failWrite(asked: Pod): Promise<string> {
    await this.node.clock.advance(0);
    this.node.fault = new Error("no space left on device");
    const rejection = await this.node.admit(asked);
    await this.node.clock.advance(0);
    this.node.fault = undefined;
    if (rejection === undefined) this.present.set(asked.metadata.uid ?? "", asked);
    return `admit with a full disk: ${rejection?.reason ?? "admitted"}`;
  }

  private resize(held: Pod): string {
    const asked = this.podOf(held.metadata.name ?? "", { of: held });
    const problem = this.node.topology.resizeProblem(asked, held);
    const isSame = JSON.stringify(asked) === JSON.stringify(held);
    const isGuaranteed = asked.spec.containers[0]?.resources?.limits !== undefined;
    assert.equal(problem !== undefined, isGuaranteed && !isSame && !this.resizes, `resize: ${problem}`);
    if (problem === undefined) this.present.set(held.metadata.uid ?? "", asked);
    return `resize: ${problem ?? "granted"}`;
  }

  private releaseOthers(): void {
    for (const allocator of this.node.topology.allocators) {
      for (const uid of [...allocator.held()]) if (!this.present.has(uid)) allocator.release(uid);
    }
  }

  /** A new pod, or the same one with other amounts. */
  private podOf(name: string, { of }: { readonly of?: Pod } = {}): Pod {
    const { chance } = this;
    const amounts = (isGuaranteed: boolean): Pick<Container, "resources"> => {
      const cpu = String(1 + chance(4));
      const memory = `${[128, 256, 512][chance(3)]}Mi`;
      if (!isGuaranteed) return { resources: { requests: { cpu, memory } } };
      const limits = { cpu, memory, ...(of === undefined && chance(4) === 0 && { "hugepages-2Mi": "16Mi" }) };
      return { resources: { limits, requests: limits } };
    };
    if (of !== undefined) {
      const isGuaranteed = of.spec.containers[0]?.resources?.limits !== undefined;
      const containers = of.spec.containers.map((each) => {
        const changed = amounts(isGuaranteed).resources ?? {};
        const huge = each.resources?.limits?.["hugepages-2Mi"];
        const more: Record<string, string> = huge === undefined ? {} : { "hugepages-2Mi": huge };
        return { ...each, resources: isGuaranteed ? both({ ...changed.limits, ...more }) : changed };
      });
      return { ...of, spec: { ...of.spec, containers } };
    }
    const kind = chance(6);
    const made = pod(name).container("app", amounts(kind !== 0));
    if (chance(3) === 0) made.init("setup", amounts(kind !== 0));
    if (chance(4) === 0) made.init("proxy", { ...amounts(kind !== 0), restartPolicy: "Always" });
    if (kind === 1) made.container("log").with({ resources: both({ cpu: "8", memory: "1Gi" }) });
    return made.build();
  }
}

function both(limits: Record<string, string>): NonNullable<Container["resources"]> {
  return { limits, requests: limits };
}

function observed({ metadata: { uid = "", name = "" }, spec }: Pod): ObservedPod {
  const containers = [...(spec.initContainers ?? []), ...spec.containers].map((container) => ({
    id: `${uid}/${container.name}`,
    name: container.name,
    state: "running",
  }));
  return { uid, name, containers } as unknown as ObservedPod; // reason: nothing else of it is read
}

describe(`over ${PARTS * WALKS * STEPS} admissions, removals, resizes and restarts`, () => {
  const first = chooseSeed("KUBELET_PROPERTY_SEED", 1);
  const seen = new Set<string>();

  for (let part = 0; part < PARTS; part++) {
    test(`no CPU and no memory has two owners or none, part ${part + 1} of ${PARTS}`, async () => {
      for (let seed = first + part * WALKS; seed < first + (part + 1) * WALKS; seed++) {
        const random = randomFrom(seed);
        const walk = new Walk((below) => Math.floor(random() * below));
        for (let step = 0; step < STEPS; step++) {
          const what = await walk.step();
          seen.add(what.replace(/uid-of-\d+|\d+/g, "N").replace(/, .*/, ""));
          walk.check(`seed ${seed}, step ${step}, ${what}`);
        }
        walk.empty();
      }
    });
  }

  test("everything that can happen has happened", () => {
    for (const format of CPU_FILE_FORMATS) assert.ok(seen.has(`restart on a file of the format ${format}`), format);
    const starts = [
      "resize: granted",
      "resize: Resize is infeasible",
      "reboot",
      "lost release",
      "admit with a full disk",
    ];
    for (const start of starts)
      assert.ok(
        [...seen].some((what) => what.startsWith(start)),
        start,
      );
  });
});
