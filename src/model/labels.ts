// Keys of labels and annotations that other programs rely on; the values are facts of the Kubernetes world.

/** Labels that the agent puts on sandboxes and containers in the runtime. */
export const POD_NAME_LABEL = "io.kubernetes.pod.name";
export const POD_NAMESPACE_LABEL = "io.kubernetes.pod.namespace";
export const POD_UID_LABEL = "io.kubernetes.pod.uid";
export const CONTAINER_NAME_LABEL = "io.kubernetes.container.name";

/** Annotations that the agent puts on containers in the runtime, read back when the spec is gone. */
export const CONTAINER_HASH_ANNOTATION = "io.kubernetes.container.hash";
export const CONTAINER_RESTART_COUNT_ANNOTATION = "io.kubernetes.container.restartCount";
export const TERMINATION_MESSAGE_PATH_ANNOTATION = "io.kubernetes.container.terminationMessagePath";
export const TERMINATION_MESSAGE_POLICY_ANNOTATION = "io.kubernetes.container.terminationMessagePolicy";
export const CONTAINER_PORTS_ANNOTATION = "io.kubernetes.container.ports";
export const PRE_STOP_HANDLER_ANNOTATION = "io.kubernetes.container.preStopHandler";
export const POD_DELETION_GRACE_PERIOD_ANNOTATION = "io.kubernetes.pod.deletionGracePeriod";
export const POD_TERMINATION_GRACE_PERIOD_ANNOTATION = "io.kubernetes.pod.terminationGracePeriod";

/** Annotations that record the source of a pod. */
export const CONFIG_SOURCE_ANNOTATION = "kubernetes.io/config.source";
export const CONFIG_SEEN_ANNOTATION = "kubernetes.io/config.seen";
export const CONFIG_HASH_ANNOTATION = "kubernetes.io/config.hash";
export const CONFIG_MIRROR_ANNOTATION = "kubernetes.io/config.mirror";

/** Followed by the container's name: the AppArmor profile of before there was a field. */
export const APPARMOR_ANNOTATION_PREFIX = "container.apparmor.security.beta.kubernetes.io/";

/** Labels of a node. */
export const HOSTNAME_LABEL = "kubernetes.io/hostname";
export const OS_LABEL = "kubernetes.io/os";
export const ARCH_LABEL = "kubernetes.io/arch";

/** Priority classes that exist in every cluster. */
export const SYSTEM_NODE_CRITICAL = "system-node-critical";
export const SYSTEM_CLUSTER_CRITICAL = "system-cluster-critical";
/** Pods of this priority and above are critical. */
export const SYSTEM_CRITICAL_PRIORITY = 2_000_000_000;

/** Sandbox annotation of pods that `kubelet up` created on a shared runtime: the owner. */
export const OWNER_ANNOTATION = "kubelet-ts/owner";

/** The crash history that a container was started with, so that it survives the agent; see `pods/crash-backoff.ts`. */
export const CRASH_ANNOTATION = "kubelet-ts/crash-backoff";
/** The requests and limits that a container was made with, as its spec had them then. */
export const RESOURCES_ANNOTATION = "kubelet-ts/resources";
