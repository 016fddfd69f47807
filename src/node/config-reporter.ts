import { type KubeApi, NODES } from "../adapters/kubeapi/index.ts";
import { type ConfigSource, type DynamicReport, sourceId, sourceName } from "../config/index.ts";
import type { Abortable } from "../lib/abort.ts";
import { Backoff } from "../lib/backoff.ts";
import type { Clock } from "../lib/clock.ts";
import { messageOf } from "../lib/errors.ts";
import type { Logger } from "../lib/log.ts";
import { Wakes } from "../lib/wakes.ts";
import { canonicalJson } from "../model/canonical-json.ts";
import type { Node } from "../model/generated/types.ts";
import type { OwnNode } from "./config-follower.ts";
import { CONFIG_STATUS_ANNOTATION, configAnnotation, configStatus } from "./config-status.ts";

const RETRY = { initialMs: 500, maxMs: 30_000, jitter: 0.1 };

export interface ConfigReporterDeps {
  readonly api: Pick<KubeApi, "patch">;
  readonly clock: Clock;
  readonly log: Logger;
  readonly random: () => number;
  readonly dynamic: { report(): DynamicReport; onChange(fn: () => void, options: Abortable): void };
  readonly node: OwnNode & { observed(node: Node): void; kick(): void };
  event(type: "Normal", reason: "KubeletConfigChanged", message: string): void;
}

/** Reports the dynamic configuration: annotation, condition, event, and the field of old servers. */
export class ConfigReporter {
  private readonly wakes: Wakes;
  /** The last patch, until it was seen on the node: a server that drops it does not get it again and again. */
  private sent: string | undefined;

  constructor(
    private readonly deps: ConfigReporterDeps,
    private readonly nodeName: string,
  ) {
    this.wakes = new Wakes(deps.clock);
  }

  /** Runs until the signal aborts. Failures are logged and retried. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, log, dynamic, node, random } = this.deps;
    const backoff = new Backoff({ ...RETRY, random });
    let active = dynamic.report().active;
    dynamic.onChange(
      () => {
        const now = dynamic.report().active;
        if (!isSame(now, active)) this.tellChange(now);
        active = now;
        node.kick();
        this.wakes.wake();
      },
      { signal },
    );
    node.onNode(() => this.wakes.wake(), { signal });
    while (!signal.aborted) {
      let waitMs: number | undefined;
      try {
        await this.send({ signal });
        backoff.reset();
      } catch (error) {
        if (signal.aborted) return;
        waitMs = backoff.next(clock.now());
        log.warn("Failed to update configuration status", { error: messageOf(error) });
      }
      await this.wakes.sleep(waitMs, signal);
    }
  }

  private tellChange(active: ConfigSource | undefined): void {
    const what = active === undefined ? "the local configuration" : `${sourceName(active)} (${sourceId(active)})`;
    this.deps.event("Normal", "KubeletConfigChanged", `Kubelet configuration in force now: ${what}`);
  }

  private async send({ signal }: Abortable): Promise<void> {
    const { node, api, dynamic } = this.deps;
    const known = node.current;
    if (known === undefined) return;
    const body = configPatch(dynamic.report(), known);
    if (body === undefined) {
      this.sent = undefined;
      return;
    }
    const text = canonicalJson({ of: known.metadata.uid, body });
    if (text === this.sent) return;
    const name = this.nodeName;
    // Metadata too: a node may patch its own through the status subresource, as at its registration.
    const answer = await api.patch(NODES, { name, type: "merge", subresource: "status", body }, { signal });
    this.sent = text;
    node.observed(answer);
  }
}

/** Returns the merge patch that reports this; undefined if the node has it. Pure. */
export function configPatch(report: DynamicReport, node: Node): object | undefined {
  const annotation = configAnnotation(report);
  const isTold = node.metadata.annotations?.[CONFIG_STATUS_ANNOTATION] === annotation;
  const metadata = { annotations: { [CONFIG_STATUS_ANNOTATION]: annotation ?? null } };
  const config = configStatus(report);
  // Servers since 1.24 drop both.
  const hasField = node.spec.configSource !== undefined || node.status?.config !== undefined;
  const isFieldTold = !hasField || canonicalJson(node.status?.config ?? {}) === canonicalJson(config);
  if (isTold && isFieldTold) return undefined;
  const none = { assigned: null, active: null, lastKnownGood: null, error: null };
  return {
    ...(isTold ? {} : { metadata }),
    ...(isFieldTold ? {} : { status: { config: { ...none, ...config } } }),
  };
}

function isSame(a: ConfigSource | undefined, b: ConfigSource | undefined): boolean {
  return a === undefined || b === undefined ? a === b : sourceId(a) === sourceId(b);
}
