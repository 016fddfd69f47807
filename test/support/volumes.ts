import { FakeClock } from "../../src/lib/clock.ts";
import { silent } from "../../src/lib/log.ts";
import type { Pod, Volume } from "../../src/model/generated/types.ts";
import type { NextTry } from "../../src/model/step.ts";
import {
  type ReconcilerDeps,
  type ReconcilerOptions,
  type VolumeKind,
  VolumeReconciler,
} from "../../src/volumes/index.ts";
import { FakeObjects } from "./objects.ts";
import { pod } from "./pods.ts";
import { VolumeMachine } from "./volume-machine.ts";

export const POD_DIR = "/root/pods/uid-of-web";

/** The reconciler on a machine in memory. */
export class VolumeScene {
  readonly objects = new FakeObjects();
  readonly clock = new FakeClock();
  readonly events: string[] = [];
  next: NextTry | undefined;
  readonly never = { signal: new AbortController().signal };
  readonly web: Pod;
  volumes: VolumeReconciler;

  constructor(
    volumes: readonly Volume[] = [],
    private readonly more: Partial<ReconcilerDeps> & { readonly kinds?: readonly VolumeKind[] } = {},
    readonly machine: VolumeMachine = new VolumeMachine(),
  ) {
    this.web = pod().container("app").with({ volumes }).build();
    this.volumes = this.newAgent();
  }

  /** Another agent on the same machine. */
  newAgent(changed: Partial<ReconcilerDeps> = {}): VolumeReconciler {
    return this.agentWith(this.more.kinds, changed);
  }

  /** Another agent on the same machine, with these kinds. */
  protected agentWith(
    kinds: readonly VolumeKind[] | undefined,
    changed: Partial<ReconcilerDeps> = {},
    families: NonNullable<ReconcilerOptions["families"]> = [],
  ): VolumeReconciler {
    const { kinds: _own, metrics, ...more } = this.more;
    // Each agent declares its metrics anew.
    const own = this.volumes === undefined && metrics !== undefined ? { metrics } : {};
    return new VolumeReconciler(
      {
        host: this.machine.asHost(),
        objects: this.objects,
        clock: this.clock,
        log: silent,
        node: {
          allocatable: { memory: "8Gi", cpu: "4" },
          labels: { "kubernetes.io/hostname": "here" },
          syncMs: 60_000,
        },
        event: (_pod, { reason, message, claim }) =>
          void this.events.push(`${reason}: ${message}${claim === undefined ? "" : ` (to claim ${claim.name})`}`),
        waiting: (_pod, next) => void (this.next = next),
        ...more,
        ...own,
        ...changed,
      },
      { rootDir: "/root", ...(kinds && { kinds }), families },
    );
  }

  prepare(of: Pod = this.web): Promise<void> {
    return this.volumes.prepare(of, this.never);
  }

  /** The one message with which a pod waits, after its first attempt. */
  async refusal(of: Pod = this.web): Promise<string> {
    const abort = new AbortController();
    let detail = "";
    const prepared = this.volumes.prepare(of, { signal: abort.signal, onWait: (text) => void (detail = text) });
    prepared.catch(() => undefined);
    await this.clock.advance(0);
    abort.abort(new Error("given up"));
    await prepared.catch(() => undefined);
    return detail;
  }

  /** Where a volume of a kind lies. */
  directory(plugin: string, name: string): string {
    return `${POD_DIR}/volumes/kubernetes.io~${plugin}/${name}`;
  }
}
