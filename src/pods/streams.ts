import type { ExecStreams, RuntimePort } from "../adapters/runtime/port.ts";
import type { Abortable } from "../lib/abort.ts";
import { CodedError } from "../lib/errors.ts";
import type { Pod } from "../model/generated/types.ts";
import type { ObservedContainer, ObservedPod } from "../model/observed.ts";
import { allContainers, podIdentity } from "../model/pod-facts.ts";

/** The pod has nothing to connect to. */
export class StreamError extends CodedError<"NoContainer" | "NoSandbox"> {}

/** Connects clients with pods; the servers proxy the upgraded connection to the URL, byte for byte. */
export class PodStreams {
  constructor(
    private readonly deps: {
      readonly runtime: Pick<RuntimePort, "exec" | "attach" | "portForward">;
      observed(uid: string): ObservedPod | undefined;
    },
  ) {}

  /** The URL at which the command runs. Rejects with `StreamError` or `RuntimeError`. */
  async exec(
    pod: Pod,
    request: ExecStreams & { readonly container: string; readonly command: readonly string[] },
    options: Abortable,
  ): Promise<string> {
    const { container, ...rest } = request;
    return this.deps.runtime.exec(this.instance(pod, container).id, rest, options);
  }

  /** The URL of the container's main process. The terminal is that of the spec, whatever the client asks for. */
  async attach(
    pod: Pod,
    { container, ...streams }: Omit<ExecStreams, "tty"> & { readonly container: string },
    options: Abortable,
  ): Promise<string> {
    const tty = allContainers(pod).find(({ name }) => name === container)?.tty ?? false;
    const { id } = this.instance(pod, container);
    return this.deps.runtime.attach(id, { ...streams, tty, stderr: streams.stderr && !tty }, options);
  }

  /** The URL at which ports of the pod are reached. */
  async portForward(pod: Pod, ports: readonly number[], options: Abortable): Promise<string> {
    const { uid, name } = podIdentity(pod);
    const sandbox = this.deps.observed(uid)?.sandboxes.find(({ state }) => state === "ready");
    if (sandbox === undefined) throw new StreamError("NoSandbox", `sandbox of pod "${name}" is not running`);
    return this.deps.runtime.portForward(sandbox.id, ports, options);
  }

  private instance(pod: Pod, container: string): ObservedContainer {
    const { uid, name } = podIdentity(pod);
    const found = newestInstance(this.deps.observed(uid), container);
    if (found === undefined)
      throw new StreamError("NoContainer", `container not found ("${container}" in pod "${name}")`);
    return found;
  }
}

/** The newest running instance of a container, else the newest of all. */
function newestInstance(observed: ObservedPod | undefined, name: string): ObservedContainer | undefined {
  const all = (observed?.containers ?? []).filter((one) => one.name === name);
  return all.find(({ state }) => state === "running") ?? all[0];
}
