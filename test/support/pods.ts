import { containerHash } from "../../src/model/container-hash.ts";
import type { Container, Pod, PodSpec } from "../../src/model/generated/types.ts";
import type { ObservedContainer, ObservedPod, ObservedSandbox } from "../../src/model/observed.ts";

/** Builds a pod for a test: `pod("web").container("app").restart("Never").build()`. */
export class PodBuilder {
  private meta: Pod["metadata"] = {};
  private spec: PodSpec = { containers: [], restartPolicy: "Always", terminationGracePeriodSeconds: 30 };

  constructor(
    private readonly name: string,
    private readonly uid: string,
  ) {}

  container(name: string, more: Partial<Container> = {}): this {
    this.spec = { ...this.spec, containers: [...this.spec.containers, { name, image: `${name}:1`, ...more }] };
    return this;
  }

  init(name: string, more: Partial<Container> = {}): this {
    const before = this.spec.initContainers ?? [];
    this.spec = { ...this.spec, initContainers: [...before, { name, image: `${name}:1`, ...more }] };
    return this;
  }

  restart(restartPolicy: "Always" | "OnFailure" | "Never"): this {
    return this.with({ restartPolicy });
  }

  with(more: Partial<PodSpec>): this {
    this.spec = { ...this.spec, ...more };
    return this;
  }

  /** Makes it a static pod. */
  fromFile(): this {
    return this.metadata({ annotations: { ...this.meta.annotations, "kubernetes.io/config.source": "file" } });
  }

  metadata(more: Pod["metadata"]): this {
    this.meta = { ...this.meta, ...more };
    return this;
  }

  build(): Pod {
    return { metadata: { name: this.name, namespace: "default", uid: this.uid, ...this.meta }, spec: this.spec };
  }
}

export function pod(name = "web", uid = `uid-of-${name}`): PodBuilder {
  return new PodBuilder(name, uid);
}

/** A container as the runtime would report it, made from its spec so that the hash fits. */
export function seen(spec: { name: string; image?: string }, more: Partial<ObservedContainer> = {}): ObservedContainer {
  const attempt = more.attempt ?? 0;
  const made = more.createdAt ?? 1000 + attempt * 1000;
  return {
    id: `${spec.name}-${attempt}`,
    sandboxId: "sandbox-0",
    name: spec.name,
    attempt,
    state: "running",
    createdAt: made,
    startedAt: made + 1,
    finishedAt: more.state === "exited" ? made + 500 : 0,
    exitCode: 0,
    reason: "",
    message: "",
    image: spec.image ?? "",
    imageRef: "sha256:1",
    logPath: "",
    hash: containerHash({ name: spec.name, image: spec.image ?? "" }),
    labels: {},
    annotations: {},
    mounts: [],
    ...more,
  };
}

export function sandbox(more: Partial<ObservedSandbox> = {}): ObservedSandbox {
  return {
    id: `sandbox-${more.attempt ?? 0}`,
    attempt: 0,
    state: "ready",
    createdAt: 900,
    hostNetwork: false,
    ips: ["10.0.0.5"],
    ...more,
  };
}

export function observed(
  of: Pod,
  sandboxes: readonly ObservedSandbox[] = [],
  containers: readonly ObservedContainer[] = [],
): ObservedPod {
  const { uid = "", name = "", namespace = "" } = of.metadata;
  return { uid, name, namespace, sandboxes, containers, readAt: 0 };
}
