// Names from the reference of Kubernetes v1.36.3, for the test that none is missing.

/** Fields of KubeletConfiguration; `*` marks a nullable one. */
export const TOP_LEVEL_FIELDS = `
  enableServer* address port readOnlyPort tlsCertFile tlsPrivateKeyFile tlsCipherSuites tlsCurvePreferences
  tlsMinVersion rotateCertificates serverTLSBootstrap authentication authorization enableDebuggingHandlers*
  enableContentionProfiling enableSystemLogHandler* enableSystemLogQuery* enableProfilingHandler*
  enableDebugFlagsHandler* healthzPort* healthzBindAddress streamingConnectionIdleTimeout showHiddenMetricsForVersion
  tracing* logging staticPodPath staticPodURL staticPodURLHeader syncFrequency fileCheckFrequency httpCheckFrequency
  kubeAPIQPS* kubeAPIBurst contentType eventRecordQPS* eventBurst nodeStatusUpdateFrequency nodeStatusReportFrequency
  nodeLeaseDurationSeconds nodeStatusMaxImages* registerNode* registerWithTaints providerID
  configMapAndSecretChangeDetectionStrategy runOnce enableControllerAttachDetach* volumePluginDir featureGates
  containerRuntimeEndpoint imageServiceEndpoint runtimeRequestTimeout registryPullQPS* registryBurst
  serializeImagePulls* maxParallelImagePulls* imagePullCredentialsVerificationPolicy
  preloadedImagesVerificationAllowlist imageMinimumGCAge imageMaximumGCAge imageGCHighThresholdPercent*
  imageGCLowThresholdPercent* containerLogMaxSize containerLogMaxFiles* containerLogMaxWorkers*
  containerLogMonitorInterval* podLogsDir seccompDefault* crashLoopBackOff kubeletCgroups systemCgroups cgroupRoot
  cgroupsPerQOS* cgroupDriver failCgroupV1* singleProcessOOMKill* cpuManagerPolicy cpuManagerPolicyOptions
  cpuManagerReconcilePeriod memoryManagerPolicy topologyManagerPolicy topologyManagerScope
  topologyManagerPolicyOptions qosReserved cpuCFSQuota* cpuCFSQuotaPeriod* podPidsLimit* maxPods podsPerCore podCIDR
  systemReserved kubeReserved reservedSystemCPUs systemReservedCgroup kubeReservedCgroup enforceNodeAllocatable
  reservedMemory memoryThrottlingFactor* memoryReservationPolicy memorySwap failSwapOn* localStorageCapacityIsolation*
  userNamespaces* protectKernelDefaults allowedUnsafeSysctls maxOpenFiles oomScoreAdj* kernelMemcgNotification
  volumeStatsAggPeriod evictionHard evictionSoft evictionSoftGracePeriod evictionPressureTransitionPeriod
  evictionMaxPodGracePeriod evictionMinimumReclaim mergeDefaultEvictionSettings* shutdownGracePeriod
  shutdownGracePeriodCriticalPods shutdownGracePeriodByPodPriority clusterDomain clusterDNS resolvConf* hairpinMode
  makeIPTablesUtilChains* iptablesMasqueradeBit* iptablesDropBit*`
  .trim()
  .split(/\s+/);

/** Flags that set a field: flag and field. */
export const FIELD_FLAGS = `
  enable-server=enableServer fail-swap-on=failSwapOn pod-manifest-path=staticPodPath sync-frequency=syncFrequency
  file-check-frequency=fileCheckFrequency http-check-frequency=httpCheckFrequency manifest-url=staticPodURL
  manifest-url-header=staticPodURLHeader address=address port=port read-only-port=readOnlyPort
  fail-cgroupv1=failCgroupV1 container-runtime-endpoint=containerRuntimeEndpoint
  image-service-endpoint=imageServiceEndpoint anonymous-auth=authentication.anonymous.enabled
  authentication-token-webhook=authentication.webhook.enabled
  authentication-token-webhook-cache-ttl=authentication.webhook.cacheTTL
  client-ca-file=authentication.x509.clientCAFile authorization-mode=authorization.mode
  authorization-webhook-cache-authorized-ttl=authorization.webhook.cacheAuthorizedTTL
  authorization-webhook-cache-unauthorized-ttl=authorization.webhook.cacheUnauthorizedTTL tls-cert-file=tlsCertFile
  tls-private-key-file=tlsPrivateKeyFile rotate-server-certificates=serverTLSBootstrap
  tls-cipher-suites=tlsCipherSuites tls-min-version=tlsMinVersion rotate-certificates=rotateCertificates
  registry-qps=registryPullQPS registry-burst=registryBurst event-qps=eventRecordQPS event-burst=eventBurst
  enable-debugging-handlers=enableDebuggingHandlers contention-profiling=enableContentionProfiling
  healthz-port=healthzPort healthz-bind-address=healthzBindAddress oom-score-adj=oomScoreAdj
  cluster-domain=clusterDomain cluster-dns=clusterDNS volume-plugin-dir=volumePluginDir
  streaming-connection-idle-timeout=streamingConnectionIdleTimeout
  node-status-update-frequency=nodeStatusUpdateFrequency minimum-image-ttl-duration=imageMinimumGCAge
  image-gc-high-threshold=imageGCHighThresholdPercent image-gc-low-threshold=imageGCLowThresholdPercent
  volume-stats-agg-period=volumeStatsAggPeriod feature-gates=featureGates kubelet-cgroups=kubeletCgroups
  system-cgroups=systemCgroups provider-id=providerID cgroups-per-qos=cgroupsPerQOS cgroup-driver=cgroupDriver
  cgroup-root=cgroupRoot cpu-manager-policy=cpuManagerPolicy cpu-manager-policy-options=cpuManagerPolicyOptions
  cpu-manager-reconcile-period=cpuManagerReconcilePeriod qos-reserved=qosReserved
  topology-manager-policy=topologyManagerPolicy topology-manager-scope=topologyManagerScope
  topology-manager-policy-options=topologyManagerPolicyOptions runtime-request-timeout=runtimeRequestTimeout
  hairpin-mode=hairpinMode max-pods=maxPods pod-cidr=podCIDR pod-max-pids=podPidsLimit resolv-conf=resolvConf
  runonce=runOnce cpu-cfs-quota=cpuCFSQuota cpu-cfs-quota-period=cpuCFSQuotaPeriod
  enable-controller-attach-detach=enableControllerAttachDetach make-iptables-util-chains=makeIPTablesUtilChains
  container-log-max-size=containerLogMaxSize container-log-max-files=containerLogMaxFiles
  allowed-unsafe-sysctls=allowedUnsafeSysctls node-status-max-images=nodeStatusMaxImages
  kernel-memcg-notification=kernelMemcgNotification local-storage-capacity-isolation=localStorageCapacityIsolation
  max-open-files=maxOpenFiles kube-api-content-type=contentType kube-api-qps=kubeAPIQPS kube-api-burst=kubeAPIBurst
  serialize-image-pulls=serializeImagePulls eviction-hard=evictionHard eviction-soft=evictionSoft
  eviction-soft-grace-period=evictionSoftGracePeriod
  eviction-pressure-transition-period=evictionPressureTransitionPeriod
  eviction-max-pod-grace-period=evictionMaxPodGracePeriod eviction-minimum-reclaim=evictionMinimumReclaim
  pods-per-core=podsPerCore protect-kernel-defaults=protectKernelDefaults reserved-cpus=reservedSystemCPUs
  system-reserved=systemReserved kube-reserved=kubeReserved enforce-node-allocatable=enforceNodeAllocatable
  system-reserved-cgroup=systemReservedCgroup kube-reserved-cgroup=kubeReservedCgroup
  memory-manager-policy=memoryManagerPolicy reserved-memory=reservedMemory register-node=registerNode
  register-with-taints=registerWithTaints logging-format=logging.format log-flush-frequency=logging.flushFrequency
  v=logging.verbosity vmodule=logging.vmodule log-text-split-stream=logging.options.text.splitStream
  log-text-info-buffer-size=logging.options.text.infoBufferSize log-json-split-stream=logging.options.json.splitStream
  log-json-info-buffer-size=logging.options.json.infoBufferSize`
  .trim()
  .split(/\s+/);

/** Flags without a field. */
export const PROCESS_FLAGS = `
  config config-dir kubeconfig bootstrap-kubeconfig hostname-override node-ip cert-dir cloud-provider root-dir
  seccomp-default node-labels lock-file exit-on-lock-contention runtime-cgroups image-credential-provider-config
  image-credential-provider-bin-dir minimum-container-ttl-duration maximum-dead-containers-per-container
  maximum-dead-containers experimental-mounter-path experimental-allocatable-ignore-eviction windows-service
  windows-priorityclass version help`
  .trim()
  .split(/\s+/);

/** Flags that Kubernetes passes to cAdvisor. */
export const CADVISOR_FLAGS = `
  housekeeping-interval application-metrics-count-limit boot-id-file container-hints containerd containerd-namespace
  enable-load-reader event-storage-age-limit event-storage-event-limit global-housekeeping-interval log-cadvisor-usage
  machine-id-file storage-driver-user storage-driver-password storage-driver-host storage-driver-db
  storage-driver-table storage-driver-secure storage-driver-buffer-duration`
  .trim()
  .split(/\s+/);

/** Removed flags. */
export const OLD_FIELDS = `
  config podManifestPath manifestURL manifestURLHeader tLSCertFile tLSPrivateKeyFile certDirectory hostnameOverride
  nodeIP podInfraContainerImage dockerEndpoint dockerExecHandlerName rootDirectory seccompProfileRoot allowPrivileged
  hostNetworkSources hostPIDSources hostIPCSources minimumGCAge maxPerPodContainerCount maxContainerCount cAdvisorPort
  masterServiceNamespace lowDiskSpaceThresholdMB outOfDiskTransitionFrequency networkPluginName networkPluginDir
  cniConfDir cniBinDir networkPluginMTU cloudProvider cloudConfigFile runtimeCgroups systemContainer containerRuntime
  remoteRuntimeEndpoint remoteImageEndpoint enableCRI rktPath rktAPIEndpoint rktStage1Image lockFilePath
  exitOnLockContention configureCbr0 reconcileCIDR experimentalFlannelOverlay nonMasqueradeCIDR babysitDaemons
  nvidiaGPUs containerized registerSchedulable nodeLabels enableCustomMetrics experimentalMounterPath
  experimentalNodeAllocatableIgnoreEvictionThreshold experimentalKernelMemcgNotification experimentalQOSReserved
  experimentalCheckNodeCapabilitiesBeforeMount experimentalFailSwapOn keepTerminatedPodVolumes
  imagePullProgressDeadline configTrialDuration`
  .trim()
  .split(/\s+/);

/** Removed fields. */
export const OLD_FLAGS = `
  add-dir-header allow-privileged alsologtostderr api-servers auth-path azure-container-registry-config
  babysit-daemons bootstrap-checkpoint-path cadvisor-port chaos-chance cloud-config cni-bin-dir cni-cache-dir
  cni-conf-dir configure-cbr0 container-runtime containerized docker docker-disable-shared-pid docker-endpoint
  docker-exec-handler docker-tls dynamic-config-dir enable-cadvisor-json-endpoints enable-cri enable-custom-metrics
  experimental-allowed-unsafe-sysctls experimental-bootstrap-kubeconfig experimental-cgroups-per-qos
  experimental-check-node-capabilities-before-mount experimental-cri experimental-dockershim
  experimental-dockershim-root-directory experimental-fail-swap-on experimental-flannel-overlay
  experimental-kernel-memcg-notification experimental-nvidia-gpus experimental-qos-reserved google-json-key
  host-ipc-sources host-network-sources host-pid-sources image-pull-progress-deadline init-config-dir
  iptables-drop-bit iptables-masquerade-bit keep-terminated-pod-volumes log-backtrace-at log-dir log-file logtostderr
  low-diskspace-threshold-mb master-service-namespace network-plugin network-plugin-dir network-plugin-mtu
  non-masquerade-cidr one-output outofdisk-transition-frequency pod-infra-container-image really-crash-for-testing
  reconcile-cidr redirect-container-streaming register-schedulable require-kubeconfig resource-container
  rkt-api-endpoint rkt-path rkt-stage1-image seccomp-profile-root skip-headers stderrthreshold system-container`
  .trim()
  .split(/\s+/);

/** Fields of KubeletConfiguration: field, type, default and first release; objects are left out. */
export const FIELD_FACTS = `
  enableServer | bool | true | 1.3
  address | string | 0.0.0.0 | 1.3
  port | int32 | 10250 | 1.3
  readOnlyPort | int32 | 0 | 1.3
  tlsCertFile | string |  | 1.4
  tlsPrivateKeyFile | string |  | 1.4
  tlsCipherSuites | list of strings |  | 1.10
  tlsCurvePreferences | list of int32 |  | 1.36
  tlsMinVersion | string |  | 1.10
  rotateCertificates | bool | false | 1.11
  serverTLSBootstrap | bool | false | 1.11
  enableDebuggingHandlers | bool | true | 1.3
  enableContentionProfiling | bool | false | 1.6
  enableSystemLogHandler | bool | true | 1.19
  enableSystemLogQuery | bool | false | 1.27
  enableProfilingHandler | bool | true | 1.21
  enableDebugFlagsHandler | bool | true | 1.21
  healthzPort | int32 | 10248 | 1.3
  healthzBindAddress | string | 127.0.0.1 | 1.3
  streamingConnectionIdleTimeout | duration | 4h | 1.3
  showHiddenMetricsForVersion | string |  | 1.18
  staticPodPath | string |  | 1.10
  staticPodURL | string |  | 1.10
  staticPodURLHeader | map of string lists |  | 1.10
  syncFrequency | duration | 1m | 1.3
  fileCheckFrequency | duration | 20s | 1.3
  httpCheckFrequency | duration | 20s | 1.3
  kubeAPIQPS | int32 | 50 | 1.3
  kubeAPIBurst | int32 | 100 | 1.3
  contentType | string | application/vnd.kubernetes.protobuf | 1.3
  eventRecordQPS | int32 | 50 | 1.3
  eventBurst | int32 | 100 | 1.3
  nodeStatusUpdateFrequency | duration | 10s | 1.3
  nodeStatusReportFrequency | duration | 5m | 1.13
  nodeLeaseDurationSeconds | int32 | 40 | 1.12
  nodeStatusMaxImages | int32 | 50 | 1.19
  registerNode | bool | true | 1.3
  providerID | string |  | 1.19
  configMapAndSecretChangeDetectionStrategy | string | Watch | 1.12
  runOnce | bool | false | 1.19
  enableControllerAttachDetach | bool | true | 1.3
  volumePluginDir | string | /usr/libexec/kubernetes/kubelet-plugins/volume/exec/ | 1.3
  featureGates | map of booleans |  | 1.5
  containerRuntimeEndpoint | string | unix:///run/containerd/containerd.sock | 1.27
  imageServiceEndpoint | string |  | 1.27
  runtimeRequestTimeout | duration | 2m | 1.3
  registryPullQPS | int32 | 5 | 1.3
  registryBurst | int32 | 10 | 1.3
  serializeImagePulls | bool | true | 1.3
  maxParallelImagePulls | int32 |  | 1.27
  imagePullCredentialsVerificationPolicy | string | NeverVerifyPreloadedImages | 1.33
  preloadedImagesVerificationAllowlist | list of strings |  | 1.33
  imageMinimumGCAge | duration | 2m | 1.3
  imageMaximumGCAge | duration | 0s | 1.29
  imageGCHighThresholdPercent | int32 | 85 | 1.3
  imageGCLowThresholdPercent | int32 | 80 | 1.3
  containerLogMaxSize | quantity | 10Mi | 1.10
  containerLogMaxFiles | int32 | 5 | 1.10
  containerLogMaxWorkers | int32 | 1 | 1.30
  containerLogMonitorInterval | duration | 10s | 1.30
  podLogsDir | string | /var/log/pods | 1.30
  seccompDefault | bool | false | 1.22
  kubeletCgroups | string |  | 1.3
  systemCgroups | string |  | 1.4
  cgroupRoot | string |  | 1.3
  cgroupsPerQOS | bool | true | 1.6
  cgroupDriver | string | cgroupfs | 1.5
  failCgroupV1 | bool | true | 1.31
  singleProcessOOMKill | bool |  | 1.32
  cpuManagerPolicy | string | none | 1.8
  cpuManagerPolicyOptions | map of strings |  | 1.22
  cpuManagerReconcilePeriod | duration | 10s | 1.8
  memoryManagerPolicy | string | None | 1.21
  topologyManagerPolicy | string | none | 1.16
  topologyManagerScope | string | container | 1.20
  topologyManagerPolicyOptions | map of strings |  | 1.26
  qosReserved | map of strings |  | 1.11
  cpuCFSQuota | bool | true | 1.3
  cpuCFSQuotaPeriod | duration | 100ms | 1.12
  podPidsLimit | int64 | -1 | 1.10
  maxPods | int32 | 110 | 1.3
  podsPerCore | int32 | 0 | 1.3
  podCIDR | string |  | 1.3
  systemReserved | map of strings |  | 1.4
  kubeReserved | map of strings |  | 1.4
  reservedSystemCPUs | string |  | 1.17
  systemReservedCgroup | string |  | 1.6
  kubeReservedCgroup | string |  | 1.6
  enforceNodeAllocatable | list of strings | pods | 1.6
  memoryThrottlingFactor | float | 0.9 | 1.22
  memoryReservationPolicy | string | None | 1.36
  failSwapOn | bool | true | 1.8
  localStorageCapacityIsolation | bool | true | 1.25
  protectKernelDefaults | bool | false | 1.4
  allowedUnsafeSysctls | list of strings |  | 1.11
  maxOpenFiles | int64 | 1000000 | 1.3
  oomScoreAdj | int32 | -999 | 1.3
  kernelMemcgNotification | bool | false | 1.19
  volumeStatsAggPeriod | duration | 1m | 1.3
  evictionHard | map of strings |  | 1.9
  evictionSoft | map of strings |  | 1.3
  evictionSoftGracePeriod | map of durations |  | 1.3
  evictionPressureTransitionPeriod | duration | 5m | 1.3
  evictionMaxPodGracePeriod | int32 | 0 | 1.3
  evictionMinimumReclaim | map of strings |  | 1.4
  mergeDefaultEvictionSettings | bool | false | 1.33
  shutdownGracePeriod | duration | 0s | 1.20
  shutdownGracePeriodCriticalPods | duration | 0s | 1.20
  clusterDomain | string |  | 1.3
  clusterDNS | list of strings |  | 1.3
  resolvConf | string | /etc/resolv.conf | 1.3
  hairpinMode | string | promiscuous-bridge | 1.3
  makeIPTablesUtilChains | bool | true | 1.3
  iptablesMasqueradeBit | int32 | 14 | 1.3
  iptablesDropBit | int32 | 15 | 1.3`
  .trim()
  .split("\n")
  .map((line) => line.split("|").map((cell) => cell.trim()));
