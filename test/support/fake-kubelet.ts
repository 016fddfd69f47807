import type { KubeApi } from "../../src/adapters/kubeapi/index.ts";
import { ApiError } from "../../src/adapters/kubeapi/index.ts";
import { manyListeners } from "../../src/lib/abort.ts";
import type { Pod, PodList } from "../../src/model/generated/types.ts";

const NODE = "here";
const STRATEGIC = "application/strategic-merge-patch+json";
const POLL_MS = 50;
/** The node is taken for lost after 50 s without one. */
const HEARTBEAT_MS = 5000;

/**
 * What a kubelet writes, by the names of images and without containers, so that controllers can be compared on any
 * server: `run` runs and is ready, `once` succeeds, `fails` fails, all others wait for ever.
 */
export class FakeKubelet {
  private readonly stop = manyListeners();
  private running: Promise<void> = Promise.resolve();
  private addresses = 0;

  constructor(private readonly api: KubeApi) {}

  /** Registers the node and begins. */
  async start(): Promise<void> {
    const amounts = { cpu: "4", memory: "8Gi", pods: "110", "ephemeral-storage": "10Gi" };
    const labels = { "kubernetes.io/hostname": NODE, "kubernetes.io/os": "linux" };
    await this.ask("POST", "/api/v1/nodes", { body: { metadata: { name: NODE, labels } } });
    await this.patch(`/api/v1/nodes/${NODE}/status`, { status: { capacity: amounts, allocatable: amounts } });
    await this.beat();
    this.running = this.loop();
  }

  async close(): Promise<void> {
    this.stop.abort();
    await this.running;
  }

  private async loop(): Promise<void> {
    let last = performance.now();
    while (!this.stop.signal.aborted) {
      if (performance.now() - last > HEARTBEAT_MS) {
        last = performance.now();
        await this.beat();
      }
      const answer = await this.ask("GET", `/api/v1/pods?fieldSelector=spec.nodeName%3D${NODE}`);
      for (const pod of (answer as PodList).items) await this.sync(pod);
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
  }

  private async beat(): Promise<void> {
    const now = new Date().toISOString();
    const ready = { type: "Ready", status: "True", reason: "KubeletReady", lastHeartbeatTime: now };
    await this.patch(`/api/v1/nodes/${NODE}/status`, { status: { conditions: [ready] } });
  }

  private async sync({ metadata, spec, status }: Pod): Promise<void> {
    const path = `/api/v1/namespaces/${metadata.namespace}/pods/${metadata.name}`;
    if (metadata.deletionTimestamp !== undefined) {
      const body = { gracePeriodSeconds: 0, preconditions: { uid: metadata.uid } };
      await this.ask("DELETE", path, { body, accepted: [404, 409] });
      return;
    }
    const [container] = spec.containers;
    const kind = /\/(\w+):/.exec(container?.image ?? "")?.[1];
    const phase = { run: "Running", once: "Succeeded", fails: "Failed" }[kind ?? ""];
    if (phase === undefined || status?.phase === phase) return;
    await this.patch(`${path}/status`, {
      metadata: { uid: metadata.uid },
      status: this.statusOf(phase, container?.name),
    });
  }

  private statusOf(phase: string, name: string | undefined): object {
    const now = new Date().toISOString().replace(/\.\d+/, "");
    const isRunning = phase === "Running";
    const exitCode = phase === "Failed" ? 1 : 0;
    const state = isRunning ? { running: { startedAt: now } } : { terminated: { exitCode, finishedAt: now } };
    const podIP = `10.1.0.${1 + (this.addresses++ % 250)}`;
    const types = ["Ready", "ContainersReady", "Initialized"];
    return {
      phase,
      startTime: now,
      podIP,
      podIPs: [{ ip: podIP }],
      conditions: types.map((type) => ({
        type,
        status: isRunning || type === "Initialized" ? "True" : "False",
        lastTransitionTime: now,
      })),
      containerStatuses: [{ name, ready: isRunning, restartCount: 0, image: "i", imageID: "i", state }],
    };
  }

  private async patch(path: string, body: object): Promise<void> {
    await this.ask("PATCH", path, { body, accepted: [404, 409] });
  }

  /** What a controller did meanwhile may be answered with one of the accepted codes. */
  private async ask(method: "GET" | "POST" | "PATCH" | "DELETE", path: string, { body, accepted = [] }: Ask = {}) {
    const contentType = method === "PATCH" ? STRATEGIC : "application/json";
    const request = { method, path, contentType, ...(body !== undefined && { body: JSON.stringify(body) }) };
    try {
      const answer = await this.api.raw(request, { signal: manyListeners().signal });
      return JSON.parse(answer.body.toString("utf8")) as unknown;
    } catch (error) {
      if (error instanceof ApiError && accepted.includes(error.httpStatus)) return undefined;
      throw error;
    }
  }
}

interface Ask {
  readonly body?: object;
  readonly accepted?: readonly number[];
}
