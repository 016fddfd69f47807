import type { OldGate } from "../feature-gates.ts";

/** Gates of kubelets up to 1.35 whose feature stayed: it is always on, the switch is gone. */
const STAYED = `
  AdmissionWebhookMatchConditions AllowServiceLBStatusOnNonLB AppArmor AppArmorFields AttachVolumeLimit BlockVolume
  BoundServiceAccountTokenVolume CPUManager CRIContainerLogRotation CSIBlockVolume CSIDriverRegistry CSIInlineVolume
  CSIMigration CSIMigrationAWS CSIMigrationAzureDisk CSIMigrationAzureFile CSIMigrationGCE CSIMigrationPortworx
  CSIMigrationvSphere CSINodeExpandSecret CSINodeInfo CSIPersistentVolume CSIStorageCapacity CSIVolumeFSGroupPolicy
  CloudDualStackNodeIPs ConfigurableFSGroupPolicy ConsistentHTTPGetHandlers CronJobTimeZone
  DelegateFSGroupToCSIDriver DevicePluginCDIDevices DevicePlugins DisableCloudProviders
  DisableKubeletCloudCredentialProviders DownwardAPIHugePages EfficientWatchResumption ElasticIndexedJob
  EphemeralContainers ExpandCSIVolumes ExpandInUsePersistentVolumes ExpandPersistentVolumes GRPCContainerProbe
  HPAContainerMetrics HugePageStorageMediumSize HugePages IPv6DualStack IndexedJob JobPodFailurePolicy
  JobTrackingWithFinalizers KMSv2 KMSv2KDF KubeProxyDrainingTerminatingNodes KubeletCredentialProviders
  KubeletPluginsWatcher KubeletPodResources KubeletPodResourcesGetAllocatable LoadBalancerIPMode
  LocalStorageCapacityIsolation MemoryManager MinDomainsInPodTopologySpread MountPropagation
  NewVolumeManagerReconstruction NodeLease NodeOutOfServiceVolumeDetach NonPreemptingPriority PVCProtection
  PersistentLocalVolumes PersistentVolumeLastPhaseTransitionTime PodDisruptionConditions PodHostIPs PodIndexLabel
  PodOverhead PodPriority PodReadinessGates PodSecurity PodShareProcessNamespace ProbeTerminationGracePeriod
  ProjectedServiceAccountToken ReadWriteOncePod RemainingItemCount RemoveSelfLink RootCAConfigMap
  RotateKubeletClientCertificate RunAsGroup RuntimeClass SCTPSupport SeccompDefault ServerSideApply
  ServiceAccountIssuerDiscovery ServiceLBNodePortControl SetHostnameAsFQDN SizeMemoryBackedVolumes
  StableLoadBalancerNodeSet StartupProbe StatefulSetAutoDeletePVC StatefulSetMinReadySeconds
  StorageObjectInUseProtection StructuredAuthorizationConfiguration SupportNodePidsLimit SupportPodPidsLimit Sysctls
  TTLAfterFinished TaintBasedEvictions TaintNodesByCondition TokenRequest TokenRequestProjection TopologyManager
  UserNamespacesPodSecurityStandards ValidatingAdmissionPolicy VolumePVCDataSource VolumeSnapshotDataSource
  VolumeSubpath VolumeSubpathEnvExpansion WarningHeaders WatchBookmark WindowsEndpointSliceProxying WindowsGMSA
  WindowsHostProcessContainers WindowsRunAsUserName ZeroLimitedNominalConcurrencyShares`;

/** Gates of features that were given up. */
const GIVEN_UP = `
  APIListChunking APIPriorityAndFairness Accelerators AdvancedAuditing AllowExtTrafficLocalEndpoints
  AllowInsecureBackendProxy BalanceAttachedNodeVolumes CSIMigrationOpenStack CustomPodDNS CustomResourceDefaulting
  CustomResourcePublishOpenAPI CustomResourceSubresources CustomResourceValidation DebugContainers
  DisableAcceleratorUsageMetrics DryRun DynamicAuditing EnableAggregatedDiscoveryTimeout EnableEquivalenceClassCache
  EndpointSlice EndpointSliceNodeName EndpointSliceProxying EndpointSliceTerminatingCondition EvenPodsSpread
  ExperimentalCriticalPodAnnotation ExperimentalHostUserNamespaceDefaulting GCERegionalPersistentDisk
  GenericEphemeralVolume HyperVContainer ImmutableEphemeralVolumes InPlacePodVerticalScalingAllocatedStatus
  InTreePluginAWSUnregister Initializers KubeletConfigFile LegacyServiceAccountTokenCleanUp
  LegacyServiceAccountTokenNoAutoGeneration LegacyServiceAccountTokenTracking MountContainers NoDaemonSetScheduler
  NodeDisruptionExclusion PodHasNetworkCondition PodPresets ReadOnlyAPIDataVolumes RequestManagement
  ResourceLimitsPriorityFunction RktRuntime ScheduleDaemonSetPods SecurityContextDeny ServiceLoadBalancerFinalizer
  ServiceNodeExclusion ServiceTopology ServiceTrafficDistribution StreamingProxyRedirects SupportIPVSProxyMode
  TopologyAwareHints ValidateProxyRedirects VolumeScheduling`;

function names(words: string): ReadonlySet<string> {
  return new Set(words.trim().split(/\s+/));
}

let stayed: ReadonlySet<string> | undefined;
let givenUp: ReadonlySet<string> | undefined;

/** What became of a gate that is none any more; undefined when it never was one. */
export const oldGate: OldGate = (name, value) => {
  stayed ??= names(STAYED);
  givenUp ??= names(GIVEN_UP);
  if (name === "DynamicKubeletConfig")
    return { isFine: true, message: "is no gate any more: --dynamic-config-dir turns it on" };
  if (givenUp.has(name)) {
    return { isFine: true, message: "is a gate of an older release whose switch is gone; it is ignored" };
  }
  if (!stayed.has(name)) return undefined;
  return value
    ? { isFine: true, message: "is a gate of an older release; its feature is always on" }
    : {
        isFine: false,
        message: "is a gate of an older release; its feature cannot be turned off any more, leave it out",
      };
};
