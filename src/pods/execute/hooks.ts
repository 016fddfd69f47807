import type { RuntimePort } from "../../adapters/runtime/port.ts";
import type { Abortable } from "../../lib/abort.ts";
import { clip } from "../../lib/bounded-text.ts";
import type { Clock } from "../../lib/clock.ts";
import { CodedError, messageOf } from "../../lib/errors.ts";
import type { Container, HTTPGetAction, LifecycleHandler, Pod } from "../../model/generated/types.ts";
import { type HttpRequest, httpActionRequest, urlOf } from "../../model/http-action.ts";
import type { PodRun } from "./context.ts";

/** The user agent of lifecycle requests: `kube-lifecycle/MAJOR.MINOR`. */
const USER_AGENT = "kube-lifecycle/1.36";
/** What an error repeats of the command and of its output, in bytes: the pod chooses both. */
const COMMAND_BYTES = 512;
const OUTPUT_BYTES = 1024;
/** The same of the output as a JSON string, in which one byte may become six. */
const QUOTED_BYTES = OUTPUT_BYTES + 256;

/** What hooks need. */
export interface HookDeps {
  readonly runtime: Pick<RuntimePort, "execSync">;
  readonly clock: Clock;
  /** Sends a GET; any response is a success. Rejects with the code `PlainAnswer` if the server does not speak TLS. */
  httpGet(request: HttpRequest, options: Abortable): Promise<{ readonly status: number }>;
}

/** The container that a hook belongs to. */
export interface HookTarget {
  readonly pod: Pod;
  readonly container: Container;
  readonly containerId: string;
  readonly podIp: string;
  /** Called when an HTTPS hook got a plain HTTP response and is retried with HTTP. */
  onPlainHttp(message: string): void;
}

/** The target of a container's hook. */
export function hookTarget(run: PodRun, container: Container, containerId: string): HookTarget {
  const { pod, journal, podIp } = run;
  const onPlainHttp = (message: string): void =>
    journal.event("Warning", "LifecycleHTTPFallback", { message, container: container.name });
  return { pod, container, containerId, podIp, onPlainHttp };
}

/** Runs a postStart or preStop handler to its end. Rejects if it failed; the signal is its only time limit. */
export async function runHook(
  deps: HookDeps,
  hook: { handler: LifecycleHandler; target: HookTarget },
  options: Abortable,
): Promise<void> {
  const { handler, target } = hook;
  if (handler.exec !== undefined) return runExec(deps, { command: handler.exec.command ?? [], target }, options);
  if (handler.httpGet !== undefined) return runHttp(deps, { action: handler.httpGet, target }, options);
  if (handler.sleep !== undefined) return deps.clock.sleep(handler.sleep.seconds * 1000, options);
  if (handler.tcpSocket !== undefined)
    throw new Error("tcpSocket is not supported in lifecycle hooks; use exec or httpGet");
  throw new Error("the lifecycle hook names no handler; give it exec, httpGet or sleep");
}

async function runHttp(
  deps: HookDeps,
  { action, target }: { action: HTTPGetAction; target: HookTarget },
  options: Abortable,
): Promise<void> {
  const facts = { podIp: target.podIp, container: target.container, userAgent: USER_AGENT };
  const request = httpActionRequest(action, facts);
  try {
    await deps.httpGet(request, options);
  } catch (error) {
    // As in Kubernetes, which for years ignored the scheme: servers without TLS still get their hook.
    if (!(error instanceof CodedError) || error.code !== "PlainAnswer") throw error;
    target.onPlainHttp(`request to HTTPS lifecycle hook got HTTP response, retrying with HTTP for ${urlOf(request)}`);
    await deps.httpGet({ ...request, scheme: "http" }, options);
  }
}

async function runExec(
  { runtime }: HookDeps,
  { command, target }: { command: readonly string[]; target: HookTarget },
  options: Abortable,
): Promise<void> {
  const line = clip(command.join(" "), COMMAND_BYTES);
  const words = `Exec lifecycle hook ([${line}]) for Container "${target.container.name}" in Pod "${target.pod.metadata.name}"`;
  const result = await runtime
    .execSync(target.containerId, { command, timeoutSeconds: 0 }, options)
    .catch((error: unknown) => {
      if (options.signal.aborted) throw error;
      throw new Error(`${words} failed - error: ${messageOf(error)}, message: ""`, { cause: error });
    });
  if (result.exitCode === 0) return;
  const output = outputOf(result);
  const text = `command '${line}' exited with ${result.exitCode}: ${output}`;
  throw new Error(`${words} failed - error: ${text}, message: ${clip(JSON.stringify(output), QUOTED_BYTES)}`);
}

/** The beginning of what a command wrote; the rest of it is not even decoded. */
function outputOf({ stdout, stderr }: { stdout: Uint8Array; stderr: Uint8Array }): string {
  const length = stdout.length + stderr.length;
  const kept = Buffer.concat([stdout.subarray(0, OUTPUT_BYTES), stderr.subarray(0, OUTPUT_BYTES)]);
  // Bytes that are no UTF-8 become three each.
  const text = clip(kept.subarray(0, OUTPUT_BYTES).toString("utf8"), OUTPUT_BYTES);
  return length <= OUTPUT_BYTES ? text : `${text}… (${length - OUTPUT_BYTES} bytes omitted)`;
}
