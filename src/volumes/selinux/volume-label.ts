import type { SelinuxContexts } from "../../adapters/host/selinux-contexts.ts";
import type { Metrics } from "../../lib/metrics.ts";
import type { Pod } from "../../model/generated/types.ts";
import { volumeLabels } from "./file-label.ts";
import { accessModeLabel, decideMountLabel, isQuotable, type MountLabelFacts } from "./mount-label.ts";

export interface SelinuxDeps {
  /** Undefined without SELinux: nothing has a label then. */
  readonly contexts: SelinuxContexts | undefined;
  readonly metrics?: Metrics;
  /** The gate SELinuxMount. */
  readonly isForAllModes: boolean;
}

/** A volume of a pod, as far as its label is concerned. */
export interface LabelledVolume extends Pick<MountLabelFacts, "accessModes"> {
  readonly pod: Pod;
  /** Its name in the pod. */
  readonly name: string;
  /** For metrics: with the driver. */
  readonly plugin: string;
  /** Asked only if there is something to decide. */
  isSupported(): Promise<boolean>;
}

type Counts = (metric: keyof ReturnType<typeof declare>, labels: readonly string[]) => void;

/** Decides about the labels that volumes are mounted with on this node, and counts what stands in their way. */
export class VolumeLabels {
  private readonly count: Counts;

  constructor(private readonly deps: SelinuxDeps) {
    const gauges = deps.metrics && declare(deps.metrics);
    this.count = (metric, labels) => gauges?.[metric].add(1, labels);
  }

  /** True if files on this machine have labels. */
  get isOn(): boolean {
    return this.deps.contexts !== undefined;
  }

  /** The label to mount the volume with; undefined if its files are labelled one by one. Throws if there is no one label. */
  async labelOf(volume: LabelledVolume): Promise<string | undefined> {
    const { contexts, isForAllModes } = this.deps;
    if (contexts === undefined) return undefined;
    const { pod, accessModes, plugin } = volume;
    const labels = volumeLabels(pod, volume.name, contexts);
    if (labels.size === 0) return undefined;
    const changePolicy = pod.spec.securityContext?.seLinuxChangePolicy;
    const isSupported = await volume.isSupported();
    const decided = decideMountLabel({ labels, accessModes, isSupported, isForAllModes, changePolicy });
    const mode = accessModeLabel(accessModes);
    switch (decided.kind) {
      case "label":
        if (!isQuotable(decided.label))
          throw new Error(`SELinux label ${JSON.stringify(decided.label)} cannot be a mount option`);
        this.count("admitted", [plugin, mode]);
        return decided.label;
      case "later":
        this.count("admitted", [plugin, mode]);
        return undefined;
      case "none":
        return undefined;
      case "conflict":
        this.count(decided.isError ? "podErrors" : "podWarnings", [mode]);
        if (decided.isError) throw new Error(`multiple SELinux labels found: ${decided.labels.join(",")}`);
        return undefined;
    }
  }

  /** The volume is mounted with one label, and a pod wants another. */
  mismatch({ plugin, accessModes }: Pick<LabelledVolume, "plugin" | "accessModes">): void {
    this.count("volumeErrors", [plugin, accessModeLabel(accessModes)]);
  }
}

/** By the names of Kubernetes. */
function declare(metrics: Metrics) {
  const name = (what: string): string => `volume_manager_selinux_${what}_total`;
  const [mode, both] = [["access_mode"], ["volume_plugin", "access_mode"]];
  const unknown = "Number of errors when kubelet cannot compute SELinux context for a container";
  // A label is made of what is known, or left to the runtime: these never count.
  metrics.gauge(name("container_errors"), unknown, mode);
  metrics.gauge(name("container_warnings"), `${unknown} that are ignored`, mode);
  return {
    podErrors: metrics.gauge(
      name("pod_context_mismatch_errors"),
      "Number of errors when a Pod defines different SELinux contexts for its containers that use the same volume. Kubelet can't start such a Pod then and it will retry, therefore value of this metric may not represent the actual nr. of Pods.",
      mode,
    ),
    podWarnings: metrics.gauge(
      name("pod_context_mismatch_warnings"),
      "Number of errors when a Pod defines different SELinux contexts for its containers that use the same volume. They are not errors yet, but they will become real errors when SELinuxMountReadWriteOncePod feature is expanded to all volume access modes.",
      mode,
    ),
    volumeErrors: metrics.gauge(
      name("volume_context_mismatch_errors"),
      "Number of errors when a Pod uses a volume that is already mounted with a different SELinux context than the Pod needs. Kubelet can't start such a Pod then and it will retry, therefore value of this metric may not represent the actual nr. of Pods.",
      both,
    ),
    volumeWarnings: metrics.gauge(
      name("volume_context_mismatch_warnings"),
      "Number of errors when a Pod uses a volume that is already mounted with a different SELinux context than the Pod needs. They are not errors yet, but they will become real errors when SELinuxMountReadWriteOncePod feature is expanded to all volume access modes.",
      both,
    ),
    admitted: metrics.gauge(
      name("volumes_admitted"),
      "Number of volumes whose SELinux context was fine and will be mounted with mount -o context option.",
      both,
    ),
  };
}
