/** Containers and sandboxes as the runtime reports them, as plain data. Times are wall-clock milliseconds; 0 means "not yet". */
export type ContainerState = "created" | "running" | "exited" | "unknown";

/** One instance (attempt) of a container, as the runtime last reported it. */
export interface ObservedContainer {
  readonly id: string;
  readonly sandboxId: string;
  readonly name: string;
  /** The restart count it was created with. */
  readonly attempt: number;
  readonly state: ContainerState;
  readonly createdAt: number;
  readonly startedAt: number;
  readonly finishedAt: number;
  readonly exitCode: number;
  readonly reason: string;
  readonly message: string;
  /** The exit is known before the runtime has settled it: reason and message may still change. */
  readonly isProvisional?: boolean;
  /** What the runtime calls the image (its first tag). */
  readonly image: string;
  /** Image reference with digest. */
  readonly imageRef: string;
  /** Hash of name and image that the container was made from; empty when the annotation is missing. */
  readonly hash: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  /** Absolute path of the log file, empty if the runtime does not report it. */
  readonly logPath: string;
  readonly mounts: readonly ObservedMount[];
  /** The user of its first process; absent if the runtime does not report it (before containerd 2). */
  readonly user?: { readonly uid: number; readonly gid: number; readonly groups: readonly number[] };
  /** Its stop signal; absent if the runtime does not report it. */
  readonly stopSignal?: string;
}

/** A mount as the runtime reports it back; used to find the termination message on the host. */
export interface ObservedMount {
  readonly containerPath: string;
  readonly hostPath: string;
  /** Reference of the image whose content is mounted: an image volume. */
  readonly image?: string;
}

/** One sandbox of a pod. */
export interface ObservedSandbox {
  readonly id: string;
  readonly attempt: number;
  readonly state: "ready" | "notReady";
  readonly createdAt: number;
  readonly hostNetwork: boolean;
  /** Primary IP first; empty on the host network or while not ready. */
  readonly ips: readonly string[];
}

/** Everything the runtime knows about one pod at one moment. */
export interface ObservedPod {
  readonly uid: string;
  readonly name: string;
  readonly namespace: string;
  /** Newest first: higher attempt, then later creation. */
  readonly sandboxes: readonly ObservedSandbox[];
  /** Newest first. */
  readonly containers: readonly ObservedContainer[];
  /** Monotonic time at which reading began: state changes after it may be missing. */
  readonly readAt: number;
}
