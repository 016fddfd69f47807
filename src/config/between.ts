import type { AgentOptions, OptionName } from "./agent-options.ts";
import { CPU_OPTION_GATES, topologyOptions } from "./rules-fields.ts";

/** What a rule across settings may look up. */
export interface Between {
  /** The option as the user wrote it: `--flag` or a field. */
  say(option: OptionName): string;
  isOn(gate: string): boolean;
}

/** Settings that do not go together: about which, and what is wrong. */
export interface Contradiction {
  readonly about: OptionName;
  readonly message: string;
}

type Rule = (v: AgentOptions, ask: Between) => Contradiction | undefined | false | readonly Contradiction[];

const PORTS = ["healthzPort", "readOnlyPort", "port"] as const;

const RULES: readonly Rule[] = [
  (v, { say }) =>
    v.dynamicConfigDir !== "" &&
    v.featureGates["DynamicKubeletConfig"] === false && {
      about: "dynamicConfigDir",
      message: `${say("dynamicConfigDir")} is given, but the feature gate DynamicKubeletConfig is off`,
    },
  (v, { say }) =>
    v.serializeImagePulls &&
    (v.maxParallelImagePulls ?? 1) > 1 && {
      about: "maxParallelImagePulls",
      message: `${say("maxParallelImagePulls")}=${v.maxParallelImagePulls} needs ${say("serializeImagePulls")}=false`,
    },
  (v, { say }) =>
    v.vmodule.length > 0 &&
    v.loggingFormat !== "text" && {
      about: "vmodule",
      message: `${say("vmodule")} works only with ${say("loggingFormat")}=text`,
    },
  (v, { say }) =>
    PORTS.flatMap((first, index) =>
      PORTS.slice(index + 1)
        .filter((second) => v[first] !== 0 && v[first] === v[second] && (v.enableServer || second !== "port"))
        .map((second) => ({ about: second, message: `${say(first)} and ${say(second)} are both ${v[first]}` })),
    ),
  (v, { say }) =>
    v.imageGCLowThresholdPercent >= v.imageGCHighThresholdPercent && {
      about: "imageGCLowThresholdPercent",
      message: `${say("imageGCLowThresholdPercent")} (${v.imageGCLowThresholdPercent}) must be below ${say("imageGCHighThresholdPercent")} (${v.imageGCHighThresholdPercent})`,
    },
  (v, { say }) =>
    v.imageMaximumGCAge > 0 &&
    v.imageMaximumGCAge <= v.imageMinimumGCAge && {
      about: "imageMaximumGCAge",
      message: `${say("imageMaximumGCAge")} must be more than ${say("imageMinimumGCAge")}`,
    },
  (v, { say }) =>
    v.systemCgroups !== "" &&
    v.cgroupRoot === "" && { about: "systemCgroups", message: `${say("systemCgroups")} needs ${say("cgroupRoot")}` },
  (v, ask) => enforcement(v, ask),
  (v, { say }) =>
    Object.keys(v.evictionSoft)
      .filter((signal) => !Object.hasOwn(v.evictionSoftGracePeriod, signal))
      .map((signal) => ({
        about: "evictionSoft" as const,
        message: `${say("evictionSoft")} has ${signal}, which needs a time in ${say("evictionSoftGracePeriod")}`,
      })),
  (v, { say }) =>
    v.reservedSystemCPUs !== "" &&
    (v.systemReservedCgroup !== "" || v.kubeReservedCgroup !== "") && {
      about: "reservedSystemCPUs",
      message: `${say("reservedSystemCPUs")} excludes ${say("systemReservedCgroup")} and ${say("kubeReservedCgroup")}`,
    },
  (v, { say }) =>
    v.shutdownGracePeriodCriticalPods > v.shutdownGracePeriod && {
      about: "shutdownGracePeriodCriticalPods",
      message: `${say("shutdownGracePeriodCriticalPods")} must be no longer than ${say("shutdownGracePeriod")}`,
    },
  (v, { say }) =>
    v.shutdownGracePeriodByPodPriority.length > 0 &&
    (v.shutdownGracePeriod > 0 || v.shutdownGracePeriodCriticalPods > 0) && {
      about: "shutdownGracePeriodByPodPriority",
      message: `${say("shutdownGracePeriodByPodPriority")} excludes ${say("shutdownGracePeriod")} and ${say("shutdownGracePeriodCriticalPods")}`,
    },
  (v, { say, isOn }) =>
    (v.shutdownGracePeriod > 0 || v.shutdownGracePeriodCriticalPods > 0) &&
    !isOn("GracefulNodeShutdown") && {
      about: "shutdownGracePeriod",
      message: `${say("shutdownGracePeriod")} needs the feature gate GracefulNodeShutdown`,
    },
  (v, { say, isOn }) =>
    v.shutdownGracePeriodByPodPriority.length > 0 &&
    !isOn("GracefulNodeShutdownBasedOnPodPriority") && {
      about: "shutdownGracePeriodByPodPriority",
      message: `${say("shutdownGracePeriodByPodPriority")} needs the feature gate GracefulNodeShutdownBasedOnPodPriority`,
    },
  (v, { say }) =>
    v.enableSystemLogQuery &&
    !v.enableSystemLogHandler && {
      about: "enableSystemLogQuery",
      message: `${say("enableSystemLogQuery")} needs ${say("enableSystemLogHandler")}=true`,
    },
  (v, { say, isOn }) =>
    v.serverTLSBootstrap &&
    !isOn("RotateKubeletServerCertificate") && {
      about: "serverTLSBootstrap",
      message: `${say("serverTLSBootstrap")} needs the feature gate RotateKubeletServerCertificate`,
    },
  (v, { say }) =>
    (v.tlsCertFile === "") !== (v.tlsPrivateKeyFile === "") && {
      about: v.tlsCertFile === "" ? "tlsPrivateKeyFile" : "tlsCertFile",
      message: `${say("tlsCertFile")} and ${say("tlsPrivateKeyFile")} go together; one is missing`,
    },
  (v, { say, isOn }) =>
    v.imagePullCredentialsVerificationPolicy !== "" &&
    !isOn("KubeletEnsureSecretPulledImages") && {
      about: "imagePullCredentialsVerificationPolicy",
      message: `${say("imagePullCredentialsVerificationPolicy")} needs the feature gate KubeletEnsureSecretPulledImages`,
    },
  (v, { say }) =>
    v.preloadedImagesVerificationAllowlist.length > 0 &&
    v.imagePullCredentialsVerificationPolicy !== "NeverVerifyAllowlistedImages" && {
      about: "preloadedImagesVerificationAllowlist",
      message: `${say("preloadedImagesVerificationAllowlist")} needs ${say("imagePullCredentialsVerificationPolicy")}=NeverVerifyAllowlistedImages`,
    },
  (v, { say, isOn }) =>
    v.memoryReservationPolicy === "TieredReservation" &&
    !isOn("MemoryQoS") && {
      about: "memoryReservationPolicy",
      message: `${say("memoryReservationPolicy")}=TieredReservation needs the feature gate MemoryQoS`,
    },
  (v, { say, isOn }) =>
    Object.keys(v.qosReserved).length > 0 &&
    !isOn("QOSReserved") && {
      about: "qosReserved",
      message: `${say("qosReserved")} needs the feature gate QOSReserved`,
    },
  (v, { say, isOn }) =>
    v.cpuCFSQuotaPeriod !== 100 &&
    !isOn("CustomCPUCFSQuotaPeriod") && {
      about: "cpuCFSQuotaPeriod",
      message: `${say("cpuCFSQuotaPeriod")} needs the feature gate CustomCPUCFSQuotaPeriod`,
    },
  (v, { say, isOn }) =>
    v.maxContainerRestartPeriod !== undefined &&
    !isOn("KubeletCrashLoopBackOffMax") && {
      about: "maxContainerRestartPeriod",
      message: `${say("maxContainerRestartPeriod")} needs the feature gate KubeletCrashLoopBackOffMax`,
    },
  (v, { say, isOn }) =>
    Object.keys(v.cpuManagerPolicyOptions).flatMap((name) => {
      const gate = CPU_OPTION_GATES[name];
      if (gate === undefined || isOn(gate)) return [];
      const message = `${say("cpuManagerPolicyOptions")} has ${name}, which needs the feature gate ${gate}`;
      return [{ about: "cpuManagerPolicyOptions" as const, message }];
    }),
  (v, { say }) => {
    const about = "topologyManagerPolicyOptions" as const;
    const problem = v.topologyManagerPolicy === "none" ? undefined : topologyOptions(v[about]);
    return problem !== undefined && { about, message: `${say(about)}: ${problem}` };
  },
  (v, { say, isOn }) => {
    const set = [
      ...(v.logTextSplitStream ? (["logTextSplitStream"] as const) : []),
      ...(v.logTextInfoBufferSize !== "0" ? (["logTextInfoBufferSize"] as const) : []),
      ...(v.logJsonSplitStream ? (["logJsonSplitStream"] as const) : []),
      ...(v.logJsonInfoBufferSize !== "0" ? (["logJsonInfoBufferSize"] as const) : []),
    ];
    if (isOn("LoggingAlphaOptions")) return undefined;
    return set.map((about) => ({ about, message: `${say(about)} needs the feature gate LoggingAlphaOptions` }));
  },
  (v, { say }) =>
    v.exitOnLockContention &&
    v.lockFile === "" && {
      about: "exitOnLockContention",
      message: `${say("exitOnLockContention")} needs ${say("lockFile")}`,
    },
];

function enforcement(v: AgentOptions, { say }: Between): readonly Contradiction[] {
  const about = "enforceNodeAllocatable" as const;
  const found: Contradiction[] = [];
  const has = (group: string): boolean => v.enforceNodeAllocatable.some((each) => each.startsWith(group));
  const given = say(about);
  if (has("system-reserved") && v.systemReservedCgroup === "") {
    found.push({ about, message: `${given} has system-reserved, which needs ${say("systemReservedCgroup")}` });
  }
  if (has("kube-reserved") && v.kubeReservedCgroup === "") {
    found.push({ about, message: `${given} has kube-reserved, which needs ${say("kubeReservedCgroup")}` });
  }
  if (!v.cgroupsPerQOS && v.enforceNodeAllocatable.some((each) => each !== "none")) {
    found.push({ about, message: `${given} needs ${say("cgroupsPerQOS")}=true, unless it is none` });
  }
  return found;
}

/** All settings that do not go together. */
export function contradictions(values: AgentOptions, ask: Between): readonly Contradiction[] {
  return RULES.flatMap((rule) => rule(values, ask) || []);
}
