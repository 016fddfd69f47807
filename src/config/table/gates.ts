/** How far a gate's feature has come. */
export type Stage = "Alpha" | "Beta" | "GA" | "Deprecated";

/** Every gate of Kubernetes v1.36.3 by stage and default; `!` marks one that is locked to its default. */
export const GATES: readonly { readonly stage: Stage; readonly isOn: boolean; readonly names: string }[] = [
  {
    stage: "Alpha",
    isOn: false,
    names: `
      APIServingWithRoutine AllowUnsafeMalformedObjectDeletion CBORServingAndStorage CPUManagerPolicyAlphaOptions
      CRIListStreaming CSIVolumeHealth ClientsAllowCBOR ClientsPreferCBOR
      CloudControllerManagerWatchBasedRoutesReconciliation CloudControllerManagerWebhook ContainerStopSignals
      ControllerManagerReleaseLeaderElectionLockOnExit CrossNamespaceVolumeDataSource DRAListTypeAttributes
      DRANodeAllocatableResources DRAResourcePoolStatus DRAWorkloadResourceClaims EventedPLEG GangScheduling
      GenericWorkload HPAScaleToZero ImageVolumeWithDigest InPlacePodVerticalScalingExclusiveCPUs
      InPlacePodVerticalScalingExclusiveMemory KubeletInUserNamespace LoggingAlphaOptions
      ManifestBasedAdmissionControlConfig MemoryQoS MutablePVNodeAffinity NativeHistograms
      PersistentVolumeClaimUnusedSinceTime PodAndContainerStatsFromCRI PodLevelResourceManagers
      PodLogsQuerySplitStreams PodsAPI QOSReserved ReduceDefaultCrashLoopBackOffDecay RuntimeClassInImageCriApi
      ShardedListAndWatch StorageCapacityScoring StorageVersionAPI TaintTolerationComparisonOperators
      TopologyAwareWorkloadScheduling TopologyManagerPolicyAlphaOptions UserNamespacesHostNetworkSupport
      VolumeLimitScaling WindowsCPUAndMemoryAffinity WorkloadAwarePreemption WorkloadWithJob`,
  },
  {
    stage: "Beta",
    isOn: false,
    names: `
      ClusterTrustBundle ClusterTrustBundleProjection ConcurrentWatchObjectDecode CoordinatedLeaderElection
      DRADeviceTaintRules LocalStorageCapacityIsolationFSQuotaMonitoring MaxUnavailableStatefulSet
      PodCertificateRequest SELinuxMount SchedulerAsyncAPICalls StorageVersionMigrator`,
  },
  {
    stage: "Beta",
    isOn: true,
    names: `
      APIResponseCompression APIServerIdentity AllowParsingUserUIDFromCertAuth AtomicFIFO
      AuthorizePodWebsocketUpgradeCreatePermission CPUManagerPolicyBetaOptions CRDObservedGenerationTracking
      ClearingNominatedNodeNameAfterBinding ClientsAllowCARotation ClientsAllowTLSCacheGC ComponentFlagz
      ComponentStatusz ConstrainedImpersonation ContainerCheckpoint ContainerRestartRules ContextualLogging
      DRAConsumableCapacity DRADeviceBindingConditions DRADeviceTaints DRAExtendedResource DRAPartitionableDevices
      DRAResourceClaimDeviceStatus DRAResourceClaimGranularStatusAuthorization DRASchedulerFilterTimeout
      DeclarativeValidationBeta DeploymentReplicaSetTerminatingReplicas DetectCacheInconsistency EnvFiles
      ExtendWebSocketsToKubelet GracefulNodeShutdown GracefulNodeShutdownBasedOnPodPriority HPAConfigurableTolerance
      HostnameOverride InOrderInformersBatchProcess InPlacePodLevelResourcesVerticalScaling
      InPlacePodVerticalScalingInitContainers KubeletCrashLoopBackOffMax KubeletEnsureSecretPulledImages
      KubeletSeparateDiskGC KubeletServiceAccountTokenForCredentialProviders ListFromCacheSnapshot LoggingBetaOptions
      MatchLabelKeysInPodTopologySpread MatchLabelKeysInPodTopologySpreadSelectorMerge
      MutablePodResourcesForSuspendedJobs MutableSchedulingDirectivesForSuspendedJobs NodeDeclaredFeatures
      NominatedNodeNameForExpectation OpenAPIEnums OpportunisticBatching PLEGOnDemandRelist PodDeletionCost
      PodLevelResources PodReadyToStartContainersCondition PodTopologyLabelsAdmission PortForwardWebsockets
      PreventStaticPodAPIReferences RelaxedServiceNameValidation ReloadKubeletClientCAFile
      ReloadKubeletServerCertificateFile RemoteRequestHeaderUID ResourceHealthStatus ResourceHealthStatusMessage
      RestartAllContainersOnContainerExits RotateKubeletServerCertificate SchedulerAsyncPreemption
      SchedulerPopFromBackoffQ ServiceAccountNodeAudienceRestriction SizeBasedListCostEstimate
      StaleControllerConsistencyDaemonSet StaleControllerConsistencyJob StaleControllerConsistencyReplicaSet
      StaleControllerConsistencyStatefulSet StatefulSetSemanticRevisionComparison StorageVersionHash
      StrictIPCIDRValidation StructuredAuthenticationConfigurationEgressSelector
      StructuredAuthenticationConfigurationJWKSMetrics TokenRequestServiceAccountUIDValidation
      TopologyManagerPolicyBetaOptions TranslateStreamCloseWebsocketRequests UnauthenticatedHTTP2DOSMitigation
      UnknownVersionInteroperabilityProxy UnlockWhileProcessingFIFO WatchCacheInitializationPostStartHook WatchList
      WatchListClient WindowsGracefulNodeShutdown`,
  },
  {
    stage: "Deprecated",
    isOn: false,
    names: `
      AllowDNSOnlyNodeCSR AllowInsecureKubeletCertificateSigningRequests AllowOverwriteTerminationGracePeriodSeconds!
      ChangeContainerStatusOnKubeletRestart DeclarativeValidationTakeover GitRepoVolumeDriver! KMSv1
      KubeletRegistrationGetOnExistsOnly SeparateCacheWatchRPC! WindowsHostNetwork`,
  },
  {
    stage: "Deprecated",
    isOn: true,
    names: `
      AggregatedDiscoveryRemoveBetaType! DisableCPUQuotaWithExclusiveCPUs DisableNodeKubeProxyVersion!
      KubeletPodResourcesListUseActivePods ServiceCIDRStatusFieldWiping StorageNamespaceIndex`,
  },
  {
    stage: "GA",
    isOn: true,
    names: `
      APIServerTracing! AllowServiceExternalIPs AnonymousAuthConfigurableEndpoints! AnyVolumeDataSource!
      AuthorizeNodeWithSelectors! AuthorizeWithSelectors! BtreeWatchCache! CPUManagerPolicyOptions!
      CRDValidationRatcheting! CSIServiceAccountTokenSecrets! ConsistentListFromCache! CustomCPUCFSQuotaPeriod
      CustomResourceFieldSelectors! DRAAdminAccess! DRAPrioritizedList DeclarativeValidation!
      DisableAllocatorDualWrite! DynamicResourceAllocation! ExecProbeTimeout! ExternalServiceAccountTokenSigner!
      ImageMaximumGCAge! ImageVolume! InOrderInformers! InPlacePodVerticalScaling! InformerResourceVersion
      JobBackoffLimitPerIndex! JobManagedBy! JobPodReplacementPolicy! JobSuccessPolicy! KubeletCgroupDriverFromCRI!
      KubeletFineGrainedAuthz! KubeletPSI! KubeletPodResourcesDynamicResources! KubeletPodResourcesGet!
      KubeletTracing! LogarithmicScaleDown! MatchLabelKeysInPodAffinity! MultiCIDRServiceAllocator!
      MutableCSINodeAllocatableCount! MutatingAdmissionPolicy NFTablesProxyMode!
      NodeInclusionPolicyInPodTopologySpread! NodeLogQuery! NodeSwap! OrderedNamespaceDeletion!
      PodLifecycleSleepAction! PodLifecycleSleepActionAllowZero! PodObservedGenerationTracking!
      PodSchedulingReadiness! PreferSameTrafficDistribution! ProcMountType! RecoverVolumeExpansionFailure!
      RecursiveReadOnlyMounts! RelaxedDNSSearchValidation! RelaxedEnvironmentVariableValidation!
      ResilientWatchCacheInitialization! RetryGenerateName! SELinuxChangePolicy! SELinuxMountReadWriteOncePod!
      SchedulerQueueingHints! SeparateTaintEvictionController! ServiceAccountTokenJTI! ServiceAccountTokenNodeBinding!
      ServiceAccountTokenNodeBindingValidation! ServiceAccountTokenPodNodeInfo! SidecarContainers!
      StreamingCollectionEncodingToJSON! StreamingCollectionEncodingToProtobuf! StructuredAuthenticationConfiguration!
      SupplementalGroupsPolicy! SystemdWatchdog! TopologyManagerPolicyOptions! UserNamespacesSupport!
      VolumeAttributesClass! WinDSR! WinOverlay!`,
  },
];

/** Gates that mean nothing without another: `gate: needed …`. */
export const GATE_NEEDS: Readonly<Record<string, readonly string[]>> = {
  CPUManagerPolicyAlphaOptions: ["CPUManagerPolicyOptions"],
  CPUManagerPolicyBetaOptions: ["CPUManagerPolicyOptions"],
  ClusterTrustBundleProjection: ["ClusterTrustBundle"],
  DRAConsumableCapacity: ["DynamicResourceAllocation"],
  DRADeviceBindingConditions: ["DynamicResourceAllocation", "DRAResourceClaimDeviceStatus"],
  DRADeviceTaintRules: ["DRADeviceTaints"],
  DRADeviceTaints: ["DynamicResourceAllocation"],
  DRAExtendedResource: ["DynamicResourceAllocation"],
  DRAListTypeAttributes: ["DynamicResourceAllocation"],
  DRANodeAllocatableResources: ["DynamicResourceAllocation"],
  DRAPartitionableDevices: ["DynamicResourceAllocation"],
  DRAPrioritizedList: ["DynamicResourceAllocation"],
  DRAResourceClaimDeviceStatus: ["DynamicResourceAllocation"],
  DRAResourcePoolStatus: ["DynamicResourceAllocation"],
  DRAWorkloadResourceClaims: ["DynamicResourceAllocation", "GenericWorkload"],
  GangScheduling: ["GenericWorkload"],
  GracefulNodeShutdownBasedOnPodPriority: ["GracefulNodeShutdown"],
  ImageVolumeWithDigest: ["ImageVolume"],
  InPlacePodLevelResourcesVerticalScaling: ["InPlacePodVerticalScaling", "PodLevelResources"],
  InPlacePodVerticalScalingExclusiveCPUs: ["InPlacePodVerticalScaling"],
  InPlacePodVerticalScalingExclusiveMemory: ["InPlacePodVerticalScaling"],
  InPlacePodVerticalScalingInitContainers: ["InPlacePodVerticalScaling"],
  PodLevelResourceManagers: ["PodLevelResources"],
  ResourceHealthStatusMessage: ["ResourceHealthStatus"],
  RestartAllContainersOnContainerExits: ["ContainerRestartRules"],
  SELinuxMount: ["SELinuxMountReadWriteOncePod", "SELinuxChangePolicy"],
  TopologyAwareWorkloadScheduling: ["GenericWorkload"],
  TopologyManagerPolicyAlphaOptions: ["TopologyManagerPolicyOptions"],
  TopologyManagerPolicyBetaOptions: ["TopologyManagerPolicyOptions"],
  UserNamespacesHostNetworkSupport: ["UserNamespacesSupport"],
  WorkloadAwarePreemption: ["GenericWorkload"],
};

/**
 * Gates of Kubernetes' kubelet that this agent accepts and does not act on: what they switch is always on here, or not
 * built yet. A gate that is honoured must be removed from this list.
 */
export const GATES_WITHOUT_EFFECT = `
  AllowDNSOnlyNodeCSR CRIListStreaming
  ChangeContainerStatusOnKubeletRestart ClusterTrustBundleProjection ContainerRestartRules ContainerStopSignals
  EnvFiles EventedPLEG
  ExtendWebSocketsToKubelet HostnameOverride
  KubeletCrashLoopBackOffMax KubeletInUserNamespace
  KubeletRegistrationGetOnExistsOnly KubeletSeparateDiskGC PLEGOnDemandRelist
  PodReadyToStartContainersCondition PodsAPI
  PreventStaticPodAPIReferences ReduceDefaultCrashLoopBackOffDecay ReloadKubeletClientCAFile
  ReloadKubeletServerCertificateFile RotateKubeletServerCertificate
  TopologyManagerPolicyAlphaOptions TopologyManagerPolicyBetaOptions
  WindowsCPUAndMemoryAffinity WindowsGracefulNodeShutdown`;
