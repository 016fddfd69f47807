import type { ExecStreams, RuntimePort } from "../adapters/runtime/port.ts";
import type { Abortable } from "../lib/abort.ts";
import { CodedError } from "../lib/errors.ts";
import type { Pod } from "../model/generated/types.ts";
import type { ObservedContainer, ObservedPod, ObservedSandbox } from "../model/observed.ts";
import { allContainers, podIdentity } from "../model/pod-facts.ts";
import type { PodIdentity } from "../model/step.ts";

/** The pod has nothing to connect to. */
export class StreamError extends CodedError<"NoContainer" | "NoSandbox"> {}

export interface PodStreamsDeps {
  readonly runtime: Pick<RuntimePort, "exec" | "attach" | "portForward">;
  readonly observer: {
    /** What was read last. */
    get(uid: string): ObservedPod | undefined;
    /** Asks the runtime. */
    read(pod: PodIdentity, options: Abortable): Promise<ObservedPod>;
  };
}

/** Connects clients with pods; the servers proxy the upgraded connection to the URL, byte for byte. */
export class PodStreams {
  constructor(private readonly deps: PodStreamsDeps) {}

  /** The URL at which the command runs. Rejects with `StreamError` or `RuntimeError`. */
  async exec(
    pod: Pod,
    request: ExecStreams & { readonly container: string; readonly command: readonly string[] },
    options: Abortable,
  ): Promise<string> {
    const { container, ...rest } = request;
    const { id } = await this.instance(pod, container, options);
    return this.deps.runtime.exec(id, rest, options);
  }

  /** The URL of the container's main process. The terminal is that of the spec, whatever the client asks for. */
  async attach(
    pod: Pod,
    { container, ...streams }: Omit<ExecStreams, "tty"> & { readonly container: string },
    options: Abortable,
  ): Promise<string> {
    const tty = allContainers(pod).find(({ name }) => name === container)?.tty ?? false;
    const { id } = await this.instance(pod, container, options);
    return this.deps.runtime.attach(id, { ...streams, tty, stderr: streams.stderr && !tty }, options);
  }

  /** The URL at which ports of the pod are reached. */
  async portForward(pod: Pod, ports: readonly number[], options: Abortable): Promise<string> {
    const isReady = ({ state }: ObservedSandbox): boolean => state === "ready";
    const { sandboxes } = await this.observe(pod, ({ sandboxes: known }) => known.some(isReady), options);
    const sandbox = sandboxes.find(isReady);
    const { name } = podIdentity(pod);
    if (sandbox === undefined) throw new StreamError("NoSandbox", `sandbox of pod "${name}" is not running`);
    return this.deps.runtime.portForward(sandbox.id, ports, options);
  }

  /** The newest running instance of a container, else the newest of all. Rejects with `StreamError` if there is none. */
  async instance(pod: Pod, container: string, options: Abortable): Promise<ObservedContainer> {
    const isMeant = ({ name }: ObservedContainer): boolean => name === container;
    const isRunning = (one: ObservedContainer): boolean => isMeant(one) && one.state === "running";
    const { containers } = await this.observe(pod, ({ containers: known }) => known.some(isRunning), options);
    const found = containers.find(isRunning) ?? containers.find(isMeant);
    if (found !== undefined) return found;
    throw new StreamError("NoContainer", `container not found ("${container}" in pod "${podIdentity(pod).name}")`);
  }

  /** The last observation if it is enough, else a new one: right after a start of the agent nothing was observed yet. */
  private async observe(pod: Pod, isEnough: (known: ObservedPod) => boolean, options: Abortable): Promise<ObservedPod> {
    const { observer } = this.deps;
    const identity = podIdentity(pod);
    const known = observer.get(identity.uid);
    return known !== undefined && isEnough(known) ? known : observer.read(identity, options);
  }
}
