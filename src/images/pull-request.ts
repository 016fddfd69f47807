import type { SandboxConfig } from "../adapters/runtime/port.ts";
import type { Abortable } from "../lib/abort.ts";
import type { Container, Pod } from "../model/generated/types.ts";
import type { PullCredential } from "../model/pull-credential.ts";
import type { StepProgress } from "../model/step.ts";

/** Where the puller records its steps and events: the pod's journal. */
export interface PullJournal {
  begin(
    step: "pull",
    options: { container: string; detail: string },
  ): {
    detail(text: string, progress?: StepProgress): void;
    done(detail?: string): void;
    fail(error: unknown): void;
    abort(): void;
  };
  event(type: "Normal" | "Warning", reason: string, what: string | { message: string; container: string }): void;
}

/** Returns the credentials for a pod's image, in the order in which they are tried. */
export type CredentialSource = (request: PullRequest, options: Abortable) => Promise<readonly PullCredential[]>;

/** Credential provider plugins. */
export interface ProviderSource {
  /** Rejects if their configuration is invalid. */
  check(): Promise<void>;
  forImage(image: string, pod: Pod, options: Abortable): Promise<readonly PullCredential[]>;
}

/** Decides who may use an image that is on the node already; `PullVerifier` in the agent. */
export interface ImageAccess {
  mustPull(
    present: { readonly image: string; readonly ref: string },
    credentials: () => Promise<readonly PullCredential[]>,
  ): Promise<boolean>;
  begin(image: string): Promise<void>;
  /** Records a pull before the next one of the image begins, so that it sees the record; `pulled` follows. */
  record(
    present: { readonly image: string; readonly ref: string },
    credential: PullCredential | undefined,
  ): Promise<void>;
  pulled(
    present: { readonly image: string; readonly ref: string },
    credential: PullCredential | undefined,
  ): Promise<void>;
  failed(image: string): Promise<void>;
  /** It is not known what came of the pull. `before` is the id that the image had before it, undefined if none. */
  unfinished(image: string, before: string | undefined, options: Abortable): Promise<void>;
  removed(ref: string): void;
  run(signal: AbortSignal): Promise<void>;
}

/** Which image, for whom. */
export interface PullRequest {
  readonly pod: Pod;
  readonly container: Container;
  readonly journal: PullJournal;
  /** Released while a pull goes on, so that other pods start meanwhile. */
  readonly slot: { release(): void };
  /** Called with what the pull waits for, and with undefined once it waits no longer. */
  onWait?(text: string | undefined): void;
  /** The pod's sandbox configuration, which the runtime gets with the pull; called only if the image is pulled. */
  sandbox?(): Promise<SandboxConfig>;
  /** The runtime's handler of the pod, empty for the default one; called only where images are kept by handler. */
  runtimeHandler?(): Promise<string>;
}
