// Written by scripts/generate-types.mjs from scripts/schemas; do not edit.

/** An amount in its text form (`500m`, `1Gi`); see ../quantity.ts. */
export type Quantity = string;

/** A moment as RFC 3339 text. */
export type Time = string;

/** A number, or a name or percentage. */
export type IntOrString = number | string;

/** io.k8s.api.core.v1.AWSElasticBlockStoreVolumeSource */
export interface AWSElasticBlockStoreVolumeSource {
  readonly fsType?: string;
  readonly partition?: number;
  readonly readOnly?: boolean;
  readonly volumeID: string;
}

/** io.k8s.api.core.v1.Affinity */
export interface Affinity {
  readonly nodeAffinity?: NodeAffinity;
  readonly podAffinity?: PodAffinity;
  readonly podAntiAffinity?: PodAntiAffinity;
}

/** io.k8s.api.core.v1.AppArmorProfile */
export interface AppArmorProfile {
  readonly localhostProfile?: string;
  readonly type: string;
}

/** io.k8s.api.core.v1.AttachedVolume */
export interface AttachedVolume {
  readonly devicePath: string;
  readonly name: string;
}

/** io.k8s.api.core.v1.AzureDiskVolumeSource */
export interface AzureDiskVolumeSource {
  readonly cachingMode?: string;
  readonly diskName: string;
  readonly diskURI: string;
  readonly fsType?: string;
  readonly kind?: string;
  readonly readOnly?: boolean;
}

/** io.k8s.api.core.v1.AzureFilePersistentVolumeSource */
export interface AzureFilePersistentVolumeSource {
  readonly readOnly?: boolean;
  readonly secretName: string;
  readonly secretNamespace?: string;
  readonly shareName: string;
}

/** io.k8s.api.core.v1.AzureFileVolumeSource */
export interface AzureFileVolumeSource {
  readonly readOnly?: boolean;
  readonly secretName: string;
  readonly shareName: string;
}

/** io.k8s.api.core.v1.Binding */
export interface Binding {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: ObjectMeta;
  readonly target: ObjectReference;
}

/** io.k8s.api.authentication.v1.BoundObjectReference */
export interface BoundObjectReference {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly name?: string;
  readonly uid?: string;
}

/** io.k8s.api.storage.v1.CSIDriver */
export interface CSIDriver {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: ObjectMeta;
  readonly spec: CSIDriverSpec;
}

/** io.k8s.api.storage.v1.CSIDriverSpec */
export interface CSIDriverSpec {
  readonly attachRequired?: boolean;
  readonly fsGroupPolicy?: string;
  readonly nodeAllocatableUpdatePeriodSeconds?: number;
  readonly podInfoOnMount?: boolean;
  readonly preventPodSchedulingIfMissing?: boolean;
  readonly requiresRepublish?: boolean;
  readonly seLinuxMount?: boolean;
  readonly serviceAccountTokenInSecrets?: boolean;
  readonly storageCapacity?: boolean;
  readonly tokenRequests?: readonly CSITokenRequest[];
  readonly volumeLifecycleModes?: readonly string[];
}

/** io.k8s.api.storage.v1.CSINode */
export interface CSINode {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: ObjectMeta;
  readonly spec: CSINodeSpec;
}

/** io.k8s.api.storage.v1.CSINodeDriver */
export interface CSINodeDriver {
  readonly allocatable?: VolumeNodeResources;
  readonly name: string;
  readonly nodeID: string;
  readonly topologyKeys?: readonly string[];
}

/** io.k8s.api.storage.v1.CSINodeSpec */
export interface CSINodeSpec {
  readonly drivers: readonly CSINodeDriver[];
}

/** io.k8s.api.core.v1.CSIPersistentVolumeSource */
export interface CSIPersistentVolumeSource {
  readonly controllerExpandSecretRef?: SecretReference;
  readonly controllerPublishSecretRef?: SecretReference;
  readonly driver: string;
  readonly fsType?: string;
  readonly nodeExpandSecretRef?: SecretReference;
  readonly nodePublishSecretRef?: SecretReference;
  readonly nodeStageSecretRef?: SecretReference;
  readonly readOnly?: boolean;
  readonly volumeAttributes?: Readonly<Record<string, string>>;
  readonly volumeHandle: string;
}

/** io.k8s.api.storage.v1.TokenRequest */
export interface CSITokenRequest {
  readonly audience: string;
  readonly expirationSeconds?: number;
}

/** io.k8s.api.core.v1.CSIVolumeSource */
export interface CSIVolumeSource {
  readonly driver: string;
  readonly fsType?: string;
  readonly nodePublishSecretRef?: LocalObjectReference;
  readonly readOnly?: boolean;
  readonly volumeAttributes?: Readonly<Record<string, string>>;
}

/** io.k8s.api.core.v1.Capabilities */
export interface Capabilities {
  readonly add?: readonly string[];
  readonly drop?: readonly string[];
}

/** io.k8s.api.core.v1.CephFSPersistentVolumeSource */
export interface CephFSPersistentVolumeSource {
  readonly monitors: readonly string[];
  readonly path?: string;
  readonly readOnly?: boolean;
  readonly secretFile?: string;
  readonly secretRef?: SecretReference;
  readonly user?: string;
}

/** io.k8s.api.core.v1.CephFSVolumeSource */
export interface CephFSVolumeSource {
  readonly monitors: readonly string[];
  readonly path?: string;
  readonly readOnly?: boolean;
  readonly secretFile?: string;
  readonly secretRef?: LocalObjectReference;
  readonly user?: string;
}

/** io.k8s.api.certificates.v1.CertificateSigningRequest */
export interface CertificateSigningRequest {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: ObjectMeta;
  readonly spec: CertificateSigningRequestSpec;
  readonly status?: CertificateSigningRequestStatus;
}

/** io.k8s.api.certificates.v1.CertificateSigningRequestCondition */
export interface CertificateSigningRequestCondition {
  readonly lastTransitionTime?: Time;
  readonly lastUpdateTime?: Time;
  readonly message?: string;
  readonly reason?: string;
  readonly status: string;
  readonly type: string;
}

/** io.k8s.api.certificates.v1.CertificateSigningRequestSpec */
export interface CertificateSigningRequestSpec {
  readonly expirationSeconds?: number;
  readonly extra?: Readonly<Record<string, readonly string[]>>;
  readonly groups?: readonly string[];
  readonly request: string;
  readonly signerName: string;
  readonly uid?: string;
  readonly usages?: readonly string[];
  readonly username?: string;
}

/** io.k8s.api.certificates.v1.CertificateSigningRequestStatus */
export interface CertificateSigningRequestStatus {
  readonly certificate?: string;
  readonly conditions?: readonly CertificateSigningRequestCondition[];
}

/** io.k8s.api.core.v1.CinderPersistentVolumeSource */
export interface CinderPersistentVolumeSource {
  readonly fsType?: string;
  readonly readOnly?: boolean;
  readonly secretRef?: SecretReference;
  readonly volumeID: string;
}

/** io.k8s.api.core.v1.CinderVolumeSource */
export interface CinderVolumeSource {
  readonly fsType?: string;
  readonly readOnly?: boolean;
  readonly secretRef?: LocalObjectReference;
  readonly volumeID: string;
}

/** io.k8s.api.core.v1.ClientIPConfig */
export interface ClientIPConfig {
  readonly timeoutSeconds?: number;
}

/** io.k8s.api.core.v1.ClusterTrustBundleProjection */
export interface ClusterTrustBundleProjection {
  readonly labelSelector?: LabelSelector;
  readonly name?: string;
  readonly optional?: boolean;
  readonly path: string;
  readonly signerName?: string;
}

/** io.k8s.apimachinery.pkg.apis.meta.v1.Condition */
export interface Condition {
  readonly lastTransitionTime: Time;
  readonly message: string;
  readonly observedGeneration?: number;
  readonly reason: string;
  readonly status: string;
  readonly type: string;
}

/** io.k8s.api.core.v1.ConfigMap */
export interface ConfigMap {
  readonly apiVersion?: string;
  readonly binaryData?: Readonly<Record<string, string>>;
  readonly data?: Readonly<Record<string, string>>;
  readonly immutable?: boolean;
  readonly kind?: string;
  readonly metadata: ObjectMeta;
}

/** io.k8s.api.core.v1.ConfigMapEnvSource */
export interface ConfigMapEnvSource {
  readonly name?: string;
  readonly optional?: boolean;
}

/** io.k8s.api.core.v1.ConfigMapKeySelector */
export interface ConfigMapKeySelector {
  readonly key: string;
  readonly name?: string;
  readonly optional?: boolean;
}

/** io.k8s.api.core.v1.ConfigMapNodeConfigSource */
export interface ConfigMapNodeConfigSource {
  readonly kubeletConfigKey: string;
  readonly name: string;
  readonly namespace: string;
  readonly resourceVersion?: string;
  readonly uid?: string;
}

/** io.k8s.api.core.v1.ConfigMapProjection */
export interface ConfigMapProjection {
  readonly items?: readonly KeyToPath[];
  readonly name?: string;
  readonly optional?: boolean;
}

/** io.k8s.api.core.v1.ConfigMapVolumeSource */
export interface ConfigMapVolumeSource {
  readonly defaultMode?: number;
  readonly items?: readonly KeyToPath[];
  readonly name?: string;
  readonly optional?: boolean;
}

/** io.k8s.api.core.v1.Container */
export interface Container {
  readonly args?: readonly string[];
  readonly command?: readonly string[];
  readonly env?: readonly EnvVar[];
  readonly envFrom?: readonly EnvFromSource[];
  readonly image?: string;
  readonly imagePullPolicy?: string;
  readonly lifecycle?: Lifecycle;
  readonly livenessProbe?: Probe;
  readonly name: string;
  readonly ports?: readonly ContainerPort[];
  readonly readinessProbe?: Probe;
  readonly resizePolicy?: readonly ContainerResizePolicy[];
  readonly resources?: ResourceRequirements;
  readonly restartPolicy?: string;
  readonly restartPolicyRules?: readonly ContainerRestartRule[];
  readonly securityContext?: SecurityContext;
  readonly startupProbe?: Probe;
  readonly stdin?: boolean;
  readonly stdinOnce?: boolean;
  readonly terminationMessagePath?: string;
  readonly terminationMessagePolicy?: string;
  readonly tty?: boolean;
  readonly volumeDevices?: readonly VolumeDevice[];
  readonly volumeMounts?: readonly VolumeMount[];
  readonly workingDir?: string;
}

/** io.k8s.api.core.v1.ContainerExtendedResourceRequest */
export interface ContainerExtendedResourceRequest {
  readonly containerName: string;
  readonly requestName: string;
  readonly resourceName: string;
}

/** io.k8s.api.core.v1.ContainerImage */
export interface ContainerImage {
  readonly names?: readonly string[];
  readonly sizeBytes?: number;
}

/** io.k8s.api.core.v1.ContainerPort */
export interface ContainerPort {
  readonly containerPort: number;
  readonly hostIP?: string;
  readonly hostPort?: number;
  readonly name?: string;
  readonly protocol?: string;
}

/** io.k8s.api.core.v1.ContainerResizePolicy */
export interface ContainerResizePolicy {
  readonly resourceName: string;
  readonly restartPolicy: string;
}

/** io.k8s.api.core.v1.ContainerRestartRule */
export interface ContainerRestartRule {
  readonly action: string;
  readonly exitCodes?: ContainerRestartRuleOnExitCodes;
}

/** io.k8s.api.core.v1.ContainerRestartRuleOnExitCodes */
export interface ContainerRestartRuleOnExitCodes {
  readonly operator: string;
  readonly values?: readonly number[];
}

/** io.k8s.api.core.v1.ContainerState */
export interface ContainerState {
  readonly running?: ContainerStateRunning;
  readonly terminated?: ContainerStateTerminated;
  readonly waiting?: ContainerStateWaiting;
}

/** io.k8s.api.core.v1.ContainerStateRunning */
export interface ContainerStateRunning {
  readonly startedAt?: Time;
}

/** io.k8s.api.core.v1.ContainerStateTerminated */
export interface ContainerStateTerminated {
  readonly containerID?: string;
  readonly exitCode: number;
  readonly finishedAt?: Time;
  readonly message?: string;
  readonly reason?: string;
  readonly signal?: number;
  readonly startedAt?: Time;
}

/** io.k8s.api.core.v1.ContainerStateWaiting */
export interface ContainerStateWaiting {
  readonly message?: string;
  readonly reason?: string;
}

/** io.k8s.api.core.v1.ContainerStatus */
export interface ContainerStatus {
  readonly allocatedResources?: Readonly<Record<string, Quantity>>;
  readonly allocatedResourcesStatus?: readonly ResourceStatus[];
  readonly containerID?: string;
  readonly image: string;
  readonly imageID: string;
  readonly lastState?: ContainerState;
  readonly name: string;
  readonly ready: boolean;
  readonly resources?: ResourceRequirements;
  readonly restartCount: number;
  readonly started?: boolean;
  readonly state?: ContainerState;
  readonly stopSignal?: string;
  readonly user?: ContainerUser;
  readonly volumeMounts?: readonly VolumeMountStatus[];
}

/** io.k8s.api.core.v1.ContainerUser */
export interface ContainerUser {
  readonly linux?: LinuxContainerUser;
}

/** io.k8s.api.apps.v1.ControllerRevision */
export interface ControllerRevision {
  readonly apiVersion?: string;
  readonly data?: unknown;
  readonly kind?: string;
  readonly metadata: ObjectMeta;
  readonly revision: number;
}

/** io.k8s.api.batch.v1.CronJob */
export interface CronJob {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: ObjectMeta;
  readonly spec: CronJobSpec;
  readonly status?: CronJobStatus;
}

/** io.k8s.api.batch.v1.CronJobSpec */
export interface CronJobSpec {
  readonly concurrencyPolicy?: string;
  readonly failedJobsHistoryLimit?: number;
  readonly jobTemplate: JobTemplateSpec;
  readonly schedule: string;
  readonly startingDeadlineSeconds?: number;
  readonly successfulJobsHistoryLimit?: number;
  readonly suspend?: boolean;
  readonly timeZone?: string;
}

/** io.k8s.api.batch.v1.CronJobStatus */
export interface CronJobStatus {
  readonly active?: readonly ObjectReference[];
  readonly lastScheduleTime?: Time;
  readonly lastSuccessfulTime?: Time;
}

/** io.k8s.api.core.v1.DaemonEndpoint */
export interface DaemonEndpoint {
  readonly Port: number;
}

/** io.k8s.api.apps.v1.DaemonSet */
export interface DaemonSet {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: ObjectMeta;
  readonly spec: DaemonSetSpec;
  readonly status?: DaemonSetStatus;
}

/** io.k8s.api.apps.v1.DaemonSetCondition */
export interface DaemonSetCondition {
  readonly lastTransitionTime?: Time;
  readonly message?: string;
  readonly reason?: string;
  readonly status: string;
  readonly type: string;
}

/** io.k8s.api.apps.v1.DaemonSetSpec */
export interface DaemonSetSpec {
  readonly minReadySeconds?: number;
  readonly revisionHistoryLimit?: number;
  readonly selector: LabelSelector;
  readonly template: PodTemplateSpec;
  readonly updateStrategy?: DaemonSetUpdateStrategy;
}

/** io.k8s.api.apps.v1.DaemonSetStatus */
export interface DaemonSetStatus {
  readonly collisionCount?: number;
  readonly conditions?: readonly DaemonSetCondition[];
  readonly currentNumberScheduled: number;
  readonly desiredNumberScheduled: number;
  readonly numberAvailable?: number;
  readonly numberMisscheduled: number;
  readonly numberReady: number;
  readonly numberUnavailable?: number;
  readonly observedGeneration?: number;
  readonly updatedNumberScheduled?: number;
}

/** io.k8s.api.apps.v1.DaemonSetUpdateStrategy */
export interface DaemonSetUpdateStrategy {
  readonly rollingUpdate?: RollingUpdateDaemonSet;
  readonly type?: string;
}

/** io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions */
export interface DeleteOptions {
  readonly apiVersion?: string;
  readonly dryRun?: readonly string[];
  readonly gracePeriodSeconds?: number;
  readonly ignoreStoreReadErrorWithClusterBreakingPotential?: boolean;
  readonly kind?: string;
  readonly orphanDependents?: boolean;
  readonly preconditions?: Preconditions;
  readonly propagationPolicy?: string;
}

/** io.k8s.api.apps.v1.Deployment */
export interface Deployment {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: ObjectMeta;
  readonly spec: DeploymentSpec;
  readonly status?: DeploymentStatus;
}

/** io.k8s.api.apps.v1.DeploymentCondition */
export interface DeploymentCondition {
  readonly lastTransitionTime?: Time;
  readonly lastUpdateTime?: Time;
  readonly message?: string;
  readonly reason?: string;
  readonly status: string;
  readonly type: string;
}

/** io.k8s.api.apps.v1.DeploymentSpec */
export interface DeploymentSpec {
  readonly minReadySeconds?: number;
  readonly paused?: boolean;
  readonly progressDeadlineSeconds?: number;
  readonly replicas?: number;
  readonly revisionHistoryLimit?: number;
  readonly selector: LabelSelector;
  readonly strategy?: DeploymentStrategy;
  readonly template: PodTemplateSpec;
}

/** io.k8s.api.apps.v1.DeploymentStatus */
export interface DeploymentStatus {
  readonly availableReplicas?: number;
  readonly collisionCount?: number;
  readonly conditions?: readonly DeploymentCondition[];
  readonly observedGeneration?: number;
  readonly readyReplicas?: number;
  readonly replicas?: number;
  readonly terminatingReplicas?: number;
  readonly unavailableReplicas?: number;
  readonly updatedReplicas?: number;
}

/** io.k8s.api.apps.v1.DeploymentStrategy */
export interface DeploymentStrategy {
  readonly rollingUpdate?: RollingUpdateDeployment;
  readonly type?: string;
}

/** io.k8s.api.core.v1.DownwardAPIProjection */
export interface DownwardAPIProjection {
  readonly items?: readonly DownwardAPIVolumeFile[];
}

/** io.k8s.api.core.v1.DownwardAPIVolumeFile */
export interface DownwardAPIVolumeFile {
  readonly fieldRef?: ObjectFieldSelector;
  readonly mode?: number;
  readonly path: string;
  readonly resourceFieldRef?: ResourceFieldSelector;
}

/** io.k8s.api.core.v1.DownwardAPIVolumeSource */
export interface DownwardAPIVolumeSource {
  readonly defaultMode?: number;
  readonly items?: readonly DownwardAPIVolumeFile[];
}

/** io.k8s.api.core.v1.EmptyDirVolumeSource */
export interface EmptyDirVolumeSource {
  readonly medium?: string;
  readonly sizeLimit?: Quantity;
}

/** io.k8s.api.discovery.v1.Endpoint */
export interface Endpoint {
  readonly addresses: readonly string[];
  readonly conditions?: EndpointConditions;
  readonly deprecatedTopology?: Readonly<Record<string, string>>;
  readonly hints?: EndpointHints;
  readonly hostname?: string;
  readonly nodeName?: string;
  readonly targetRef?: ObjectReference;
  readonly zone?: string;
}

/** io.k8s.api.core.v1.EndpointAddress */
export interface EndpointAddress {
  readonly hostname?: string;
  readonly ip: string;
  readonly nodeName?: string;
  readonly targetRef?: ObjectReference;
}

/** io.k8s.api.discovery.v1.EndpointConditions */
export interface EndpointConditions {
  readonly ready?: boolean;
  readonly serving?: boolean;
  readonly terminating?: boolean;
}

/** io.k8s.api.discovery.v1.EndpointHints */
export interface EndpointHints {
  readonly forNodes?: readonly ForNode[];
  readonly forZones?: readonly ForZone[];
}

/** io.k8s.api.core.v1.EndpointPort */
export interface EndpointPort {
  readonly appProtocol?: string;
  readonly name?: string;
  readonly port: number;
  readonly protocol?: string;
}

/** io.k8s.api.discovery.v1.EndpointSlice */
export interface EndpointSlice {
  readonly addressType: string;
  readonly apiVersion?: string;
  readonly endpoints?: readonly Endpoint[];
  readonly kind?: string;
  readonly metadata: ObjectMeta;
  readonly ports?: readonly EndpointSlicePort[];
}

/** io.k8s.api.discovery.v1.EndpointPort */
export interface EndpointSlicePort {
  readonly appProtocol?: string;
  readonly name?: string;
  readonly port?: number;
  readonly protocol?: string;
}

/** io.k8s.api.core.v1.EndpointSubset */
export interface EndpointSubset {
  readonly addresses?: readonly EndpointAddress[];
  readonly notReadyAddresses?: readonly EndpointAddress[];
  readonly ports?: readonly EndpointPort[];
}

/** io.k8s.api.core.v1.Endpoints */
export interface Endpoints {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: ObjectMeta;
  readonly subsets?: readonly EndpointSubset[];
}

/** io.k8s.api.core.v1.EnvFromSource */
export interface EnvFromSource {
  readonly configMapRef?: ConfigMapEnvSource;
  readonly prefix?: string;
  readonly secretRef?: SecretEnvSource;
}

/** io.k8s.api.core.v1.EnvVar */
export interface EnvVar {
  readonly name: string;
  readonly value?: string;
  readonly valueFrom?: EnvVarSource;
}

/** io.k8s.api.core.v1.EnvVarSource */
export interface EnvVarSource {
  readonly configMapKeyRef?: ConfigMapKeySelector;
  readonly fieldRef?: ObjectFieldSelector;
  readonly fileKeyRef?: FileKeySelector;
  readonly resourceFieldRef?: ResourceFieldSelector;
  readonly secretKeyRef?: SecretKeySelector;
}

/** io.k8s.api.core.v1.EphemeralContainer */
export interface EphemeralContainer {
  readonly args?: readonly string[];
  readonly command?: readonly string[];
  readonly env?: readonly EnvVar[];
  readonly envFrom?: readonly EnvFromSource[];
  readonly image?: string;
  readonly imagePullPolicy?: string;
  readonly lifecycle?: Lifecycle;
  readonly livenessProbe?: Probe;
  readonly name: string;
  readonly ports?: readonly ContainerPort[];
  readonly readinessProbe?: Probe;
  readonly resizePolicy?: readonly ContainerResizePolicy[];
  readonly resources?: ResourceRequirements;
  readonly restartPolicy?: string;
  readonly restartPolicyRules?: readonly ContainerRestartRule[];
  readonly securityContext?: SecurityContext;
  readonly startupProbe?: Probe;
  readonly stdin?: boolean;
  readonly stdinOnce?: boolean;
  readonly targetContainerName?: string;
  readonly terminationMessagePath?: string;
  readonly terminationMessagePolicy?: string;
  readonly tty?: boolean;
  readonly volumeDevices?: readonly VolumeDevice[];
  readonly volumeMounts?: readonly VolumeMount[];
  readonly workingDir?: string;
}

/** io.k8s.api.core.v1.EphemeralVolumeSource */
export interface EphemeralVolumeSource {
  readonly volumeClaimTemplate?: PersistentVolumeClaimTemplate;
}

/** io.k8s.api.core.v1.Event */
export interface Event {
  readonly action?: string;
  readonly apiVersion?: string;
  readonly count?: number;
  readonly eventTime?: Time;
  readonly firstTimestamp?: Time;
  readonly involvedObject: ObjectReference;
  readonly kind?: string;
  readonly lastTimestamp?: Time;
  readonly message?: string;
  readonly metadata: ObjectMeta;
  readonly reason?: string;
  readonly related?: ObjectReference;
  readonly reportingComponent?: string;
  readonly reportingInstance?: string;
  readonly series?: EventSeries;
  readonly source?: EventSource;
  readonly type?: string;
}

/** io.k8s.api.core.v1.EventSeries */
export interface EventSeries {
  readonly count?: number;
  readonly lastObservedTime?: Time;
}

/** io.k8s.api.core.v1.EventSource */
export interface EventSource {
  readonly component?: string;
  readonly host?: string;
}

/** io.k8s.api.events.v1.Event */
export interface EventsEvent {
  readonly action?: string;
  readonly apiVersion?: string;
  readonly deprecatedCount?: number;
  readonly deprecatedFirstTimestamp?: Time;
  readonly deprecatedLastTimestamp?: Time;
  readonly deprecatedSource?: EventSource;
  readonly eventTime: Time;
  readonly kind?: string;
  readonly metadata: ObjectMeta;
  readonly note?: string;
  readonly reason?: string;
  readonly regarding?: ObjectReference;
  readonly related?: ObjectReference;
  readonly reportingController?: string;
  readonly reportingInstance?: string;
  readonly series?: EventsEventSeries;
  readonly type?: string;
}

/** io.k8s.api.events.v1.EventSeries */
export interface EventsEventSeries {
  readonly count: number;
  readonly lastObservedTime: Time;
}

/** io.k8s.api.policy.v1.Eviction */
export interface Eviction {
  readonly apiVersion?: string;
  readonly deleteOptions?: DeleteOptions;
  readonly kind?: string;
  readonly metadata: ObjectMeta;
}

/** io.k8s.api.core.v1.ExecAction */
export interface ExecAction {
  readonly command?: readonly string[];
}

/** io.k8s.api.core.v1.FCVolumeSource */
export interface FCVolumeSource {
  readonly fsType?: string;
  readonly lun?: number;
  readonly readOnly?: boolean;
  readonly targetWWNs?: readonly string[];
  readonly wwids?: readonly string[];
}

/** io.k8s.api.authorization.v1.FieldSelectorAttributes */
export interface FieldSelectorAttributes {
  readonly rawSelector?: string;
  readonly requirements?: readonly FieldSelectorRequirement[];
}

/** io.k8s.apimachinery.pkg.apis.meta.v1.FieldSelectorRequirement */
export interface FieldSelectorRequirement {
  readonly key: string;
  readonly operator: string;
  readonly values?: readonly string[];
}

/** io.k8s.api.core.v1.FileKeySelector */
export interface FileKeySelector {
  readonly key: string;
  readonly optional?: boolean;
  readonly path: string;
  readonly volumeName: string;
}

/** io.k8s.api.core.v1.FlexPersistentVolumeSource */
export interface FlexPersistentVolumeSource {
  readonly driver: string;
  readonly fsType?: string;
  readonly options?: Readonly<Record<string, string>>;
  readonly readOnly?: boolean;
  readonly secretRef?: SecretReference;
}

/** io.k8s.api.core.v1.FlexVolumeSource */
export interface FlexVolumeSource {
  readonly driver: string;
  readonly fsType?: string;
  readonly options?: Readonly<Record<string, string>>;
  readonly readOnly?: boolean;
  readonly secretRef?: LocalObjectReference;
}

/** io.k8s.api.core.v1.FlockerVolumeSource */
export interface FlockerVolumeSource {
  readonly datasetName?: string;
  readonly datasetUUID?: string;
}

/** io.k8s.api.discovery.v1.ForNode */
export interface ForNode {
  readonly name: string;
}

/** io.k8s.api.discovery.v1.ForZone */
export interface ForZone {
  readonly name: string;
}

/** io.k8s.api.core.v1.GCEPersistentDiskVolumeSource */
export interface GCEPersistentDiskVolumeSource {
  readonly fsType?: string;
  readonly partition?: number;
  readonly pdName: string;
  readonly readOnly?: boolean;
}

/** io.k8s.api.core.v1.GRPCAction */
export interface GRPCAction {
  readonly port: number;
  readonly service?: string;
}

/** io.k8s.api.core.v1.GitRepoVolumeSource */
export interface GitRepoVolumeSource {
  readonly directory?: string;
  readonly repository: string;
  readonly revision?: string;
}

/** io.k8s.api.core.v1.GlusterfsPersistentVolumeSource */
export interface GlusterfsPersistentVolumeSource {
  readonly endpoints: string;
  readonly endpointsNamespace?: string;
  readonly path: string;
  readonly readOnly?: boolean;
}

/** io.k8s.api.core.v1.GlusterfsVolumeSource */
export interface GlusterfsVolumeSource {
  readonly endpoints: string;
  readonly path: string;
  readonly readOnly?: boolean;
}

/** io.k8s.api.core.v1.HTTPGetAction */
export interface HTTPGetAction {
  readonly host?: string;
  readonly httpHeaders?: readonly HTTPHeader[];
  readonly path?: string;
  readonly port: IntOrString;
  readonly scheme?: string;
}

/** io.k8s.api.core.v1.HTTPHeader */
export interface HTTPHeader {
  readonly name: string;
  readonly value: string;
}

/** io.k8s.api.core.v1.HostAlias */
export interface HostAlias {
  readonly hostnames?: readonly string[];
  readonly ip: string;
}

/** io.k8s.api.core.v1.HostIP */
export interface HostIP {
  readonly ip: string;
}

/** io.k8s.api.core.v1.HostPathVolumeSource */
export interface HostPathVolumeSource {
  readonly path: string;
  readonly type?: string;
}

/** io.k8s.api.core.v1.ISCSIPersistentVolumeSource */
export interface ISCSIPersistentVolumeSource {
  readonly chapAuthDiscovery?: boolean;
  readonly chapAuthSession?: boolean;
  readonly fsType?: string;
  readonly initiatorName?: string;
  readonly iqn: string;
  readonly iscsiInterface?: string;
  readonly lun: number;
  readonly portals?: readonly string[];
  readonly readOnly?: boolean;
  readonly secretRef?: SecretReference;
  readonly targetPortal: string;
}

/** io.k8s.api.core.v1.ISCSIVolumeSource */
export interface ISCSIVolumeSource {
  readonly chapAuthDiscovery?: boolean;
  readonly chapAuthSession?: boolean;
  readonly fsType?: string;
  readonly initiatorName?: string;
  readonly iqn: string;
  readonly iscsiInterface?: string;
  readonly lun: number;
  readonly portals?: readonly string[];
  readonly readOnly?: boolean;
  readonly secretRef?: LocalObjectReference;
  readonly targetPortal: string;
}

/** io.k8s.api.core.v1.ImageVolumeSource */
export interface ImageVolumeSource {
  readonly pullPolicy?: string;
  readonly reference?: string;
}

/** io.k8s.api.core.v1.ImageVolumeStatus */
export interface ImageVolumeStatus {
  readonly imageRef: string;
}

/** io.k8s.api.batch.v1.Job */
export interface Job {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: ObjectMeta;
  readonly spec: JobSpec;
  readonly status?: JobStatus;
}

/** io.k8s.api.batch.v1.JobCondition */
export interface JobCondition {
  readonly lastProbeTime?: Time;
  readonly lastTransitionTime?: Time;
  readonly message?: string;
  readonly reason?: string;
  readonly status: string;
  readonly type: string;
}

/** io.k8s.api.batch.v1.JobSpec */
export interface JobSpec {
  readonly activeDeadlineSeconds?: number;
  readonly backoffLimit?: number;
  readonly backoffLimitPerIndex?: number;
  readonly completionMode?: string;
  readonly completions?: number;
  readonly managedBy?: string;
  readonly manualSelector?: boolean;
  readonly maxFailedIndexes?: number;
  readonly parallelism?: number;
  readonly podFailurePolicy?: PodFailurePolicy;
  readonly podReplacementPolicy?: string;
  readonly selector?: LabelSelector;
  readonly successPolicy?: SuccessPolicy;
  readonly suspend?: boolean;
  readonly template: PodTemplateSpec;
  readonly ttlSecondsAfterFinished?: number;
}

/** io.k8s.api.batch.v1.JobStatus */
export interface JobStatus {
  readonly active?: number;
  readonly completedIndexes?: string;
  readonly completionTime?: Time;
  readonly conditions?: readonly JobCondition[];
  readonly failed?: number;
  readonly failedIndexes?: string;
  readonly ready?: number;
  readonly startTime?: Time;
  readonly succeeded?: number;
  readonly terminating?: number;
  readonly uncountedTerminatedPods?: UncountedTerminatedPods;
}

/** io.k8s.api.batch.v1.JobTemplateSpec */
export interface JobTemplateSpec {
  readonly metadata?: ObjectMeta;
  readonly spec?: JobSpec;
}

/** io.k8s.api.core.v1.KeyToPath */
export interface KeyToPath {
  readonly key: string;
  readonly mode?: number;
  readonly path: string;
}

/** io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector */
export interface LabelSelector {
  readonly matchExpressions?: readonly LabelSelectorRequirement[];
  readonly matchLabels?: Readonly<Record<string, string>>;
}

/** io.k8s.api.authorization.v1.LabelSelectorAttributes */
export interface LabelSelectorAttributes {
  readonly rawSelector?: string;
  readonly requirements?: readonly LabelSelectorRequirement[];
}

/** io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelectorRequirement */
export interface LabelSelectorRequirement {
  readonly key: string;
  readonly operator: string;
  readonly values?: readonly string[];
}

/** io.k8s.api.coordination.v1.Lease */
export interface Lease {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: ObjectMeta;
  readonly spec: LeaseSpec;
}

/** io.k8s.api.coordination.v1.LeaseSpec */
export interface LeaseSpec {
  readonly acquireTime?: Time;
  readonly holderIdentity?: string;
  readonly leaseDurationSeconds?: number;
  readonly leaseTransitions?: number;
  readonly preferredHolder?: string;
  readonly renewTime?: Time;
  readonly strategy?: string;
}

/** io.k8s.api.core.v1.Lifecycle */
export interface Lifecycle {
  readonly postStart?: LifecycleHandler;
  readonly preStop?: LifecycleHandler;
  readonly stopSignal?: string;
}

/** io.k8s.api.core.v1.LifecycleHandler */
export interface LifecycleHandler {
  readonly exec?: ExecAction;
  readonly httpGet?: HTTPGetAction;
  readonly sleep?: SleepAction;
  readonly tcpSocket?: TCPSocketAction;
}

/** io.k8s.api.core.v1.LinuxContainerUser */
export interface LinuxContainerUser {
  readonly gid: number;
  readonly supplementalGroups?: readonly number[];
  readonly uid: number;
}

/** io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta */
export interface ListMeta {
  readonly continue?: string;
  readonly remainingItemCount?: number;
  readonly resourceVersion?: string;
  readonly selfLink?: string;
  readonly shardInfo?: ShardInfo;
}

/** io.k8s.api.core.v1.LoadBalancerIngress */
export interface LoadBalancerIngress {
  readonly hostname?: string;
  readonly ip?: string;
  readonly ipMode?: string;
  readonly ports?: readonly PortStatus[];
}

/** io.k8s.api.core.v1.LoadBalancerStatus */
export interface LoadBalancerStatus {
  readonly ingress?: readonly LoadBalancerIngress[];
}

/** io.k8s.api.core.v1.LocalObjectReference */
export interface LocalObjectReference {
  readonly name?: string;
}

/** io.k8s.api.authorization.v1.LocalSubjectAccessReview */
export interface LocalSubjectAccessReview {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: ObjectMeta;
  readonly spec: SubjectAccessReviewSpec;
  readonly status?: SubjectAccessReviewStatus;
}

/** io.k8s.api.core.v1.LocalVolumeSource */
export interface LocalVolumeSource {
  readonly fsType?: string;
  readonly path: string;
}

/** io.k8s.apimachinery.pkg.apis.meta.v1.ManagedFieldsEntry */
export interface ManagedFieldsEntry {
  readonly apiVersion?: string;
  readonly fieldsType?: string;
  readonly fieldsV1?: unknown;
  readonly manager?: string;
  readonly operation?: string;
  readonly subresource?: string;
  readonly time?: Time;
}

/** io.k8s.api.core.v1.ModifyVolumeStatus */
export interface ModifyVolumeStatus {
  readonly status: string;
  readonly targetVolumeAttributesClassName?: string;
}

/** io.k8s.api.core.v1.NFSVolumeSource */
export interface NFSVolumeSource {
  readonly path: string;
  readonly readOnly?: boolean;
  readonly server: string;
}

/** io.k8s.api.core.v1.Namespace */
export interface Namespace {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: ObjectMeta;
  readonly spec: NamespaceSpec;
  readonly status?: NamespaceStatus;
}

/** io.k8s.api.core.v1.NamespaceCondition */
export interface NamespaceCondition {
  readonly lastTransitionTime?: Time;
  readonly message?: string;
  readonly reason?: string;
  readonly status: string;
  readonly type: string;
}

/** io.k8s.api.core.v1.NamespaceSpec */
export interface NamespaceSpec {
  readonly finalizers?: readonly string[];
}

/** io.k8s.api.core.v1.NamespaceStatus */
export interface NamespaceStatus {
  readonly conditions?: readonly NamespaceCondition[];
  readonly phase?: string;
}

/** io.k8s.api.core.v1.Node */
export interface Node {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: ObjectMeta;
  readonly spec: NodeSpec;
  readonly status?: NodeStatus;
}

/** io.k8s.api.core.v1.NodeAddress */
export interface NodeAddress {
  readonly address: string;
  readonly type: string;
}

/** io.k8s.api.core.v1.NodeAffinity */
export interface NodeAffinity {
  readonly preferredDuringSchedulingIgnoredDuringExecution?: readonly PreferredSchedulingTerm[];
  readonly requiredDuringSchedulingIgnoredDuringExecution?: NodeSelector;
}

/** io.k8s.api.core.v1.NodeAllocatableResourceClaimStatus */
export interface NodeAllocatableResourceClaimStatus {
  readonly containers?: readonly string[];
  readonly resourceClaimName: string;
  readonly resources: Readonly<Record<string, Quantity>>;
}

/** io.k8s.api.core.v1.NodeCondition */
export interface NodeCondition {
  readonly lastHeartbeatTime?: Time;
  readonly lastTransitionTime?: Time;
  readonly message?: string;
  readonly reason?: string;
  readonly status: string;
  readonly type: string;
}

/** io.k8s.api.core.v1.NodeConfigSource */
export interface NodeConfigSource {
  readonly configMap?: ConfigMapNodeConfigSource;
}

/** io.k8s.api.core.v1.NodeConfigStatus */
export interface NodeConfigStatus {
  readonly active?: NodeConfigSource;
  readonly assigned?: NodeConfigSource;
  readonly error?: string;
  readonly lastKnownGood?: NodeConfigSource;
}

/** io.k8s.api.core.v1.NodeDaemonEndpoints */
export interface NodeDaemonEndpoints {
  readonly kubeletEndpoint?: DaemonEndpoint;
}

/** io.k8s.api.core.v1.NodeFeatures */
export interface NodeFeatures {
  readonly supplementalGroupsPolicy?: boolean;
}

/** io.k8s.api.core.v1.NodeRuntimeHandler */
export interface NodeRuntimeHandler {
  readonly features?: NodeRuntimeHandlerFeatures;
  readonly name?: string;
}

/** io.k8s.api.core.v1.NodeRuntimeHandlerFeatures */
export interface NodeRuntimeHandlerFeatures {
  readonly recursiveReadOnlyMounts?: boolean;
  readonly userNamespaces?: boolean;
}

/** io.k8s.api.core.v1.NodeSelector */
export interface NodeSelector {
  readonly nodeSelectorTerms: readonly NodeSelectorTerm[];
}

/** io.k8s.api.core.v1.NodeSelectorRequirement */
export interface NodeSelectorRequirement {
  readonly key: string;
  readonly operator: string;
  readonly values?: readonly string[];
}

/** io.k8s.api.core.v1.NodeSelectorTerm */
export interface NodeSelectorTerm {
  readonly matchExpressions?: readonly NodeSelectorRequirement[];
  readonly matchFields?: readonly NodeSelectorRequirement[];
}

/** io.k8s.api.core.v1.NodeSpec */
export interface NodeSpec {
  readonly configSource?: NodeConfigSource;
  readonly externalID?: string;
  readonly podCIDR?: string;
  readonly podCIDRs?: readonly string[];
  readonly providerID?: string;
  readonly taints?: readonly Taint[];
  readonly unschedulable?: boolean;
}

/** io.k8s.api.core.v1.NodeStatus */
export interface NodeStatus {
  readonly addresses?: readonly NodeAddress[];
  readonly allocatable?: Readonly<Record<string, Quantity>>;
  readonly capacity?: Readonly<Record<string, Quantity>>;
  readonly conditions?: readonly NodeCondition[];
  readonly config?: NodeConfigStatus;
  readonly daemonEndpoints?: NodeDaemonEndpoints;
  readonly declaredFeatures?: readonly string[];
  readonly features?: NodeFeatures;
  readonly images?: readonly ContainerImage[];
  readonly nodeInfo?: NodeSystemInfo;
  readonly phase?: string;
  readonly runtimeHandlers?: readonly NodeRuntimeHandler[];
  readonly volumesAttached?: readonly AttachedVolume[];
  readonly volumesInUse?: readonly string[];
}

/** io.k8s.api.core.v1.NodeSwapStatus */
export interface NodeSwapStatus {
  readonly capacity?: number;
}

/** io.k8s.api.core.v1.NodeSystemInfo */
export interface NodeSystemInfo {
  readonly architecture: string;
  readonly bootID: string;
  readonly containerRuntimeVersion: string;
  readonly kernelVersion: string;
  readonly kubeProxyVersion: string;
  readonly kubeletVersion: string;
  readonly machineID: string;
  readonly operatingSystem: string;
  readonly osImage: string;
  readonly swap?: NodeSwapStatus;
  readonly systemUUID: string;
}

/** io.k8s.api.authorization.v1.NonResourceAttributes */
export interface NonResourceAttributes {
  readonly path?: string;
  readonly verb?: string;
}

/** io.k8s.api.authorization.v1.NonResourceRule */
export interface NonResourceRule {
  readonly nonResourceURLs?: readonly string[];
  readonly verbs: readonly string[];
}

/** io.k8s.api.core.v1.ObjectFieldSelector */
export interface ObjectFieldSelector {
  readonly apiVersion?: string;
  readonly fieldPath: string;
}

/** io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta */
export interface ObjectMeta {
  readonly annotations?: Readonly<Record<string, string>>;
  readonly creationTimestamp?: Time;
  readonly deletionGracePeriodSeconds?: number;
  readonly deletionTimestamp?: Time;
  readonly finalizers?: readonly string[];
  readonly generateName?: string;
  readonly generation?: number;
  readonly labels?: Readonly<Record<string, string>>;
  readonly managedFields?: readonly ManagedFieldsEntry[];
  readonly name?: string;
  readonly namespace?: string;
  readonly ownerReferences?: readonly OwnerReference[];
  readonly resourceVersion?: string;
  readonly selfLink?: string;
  readonly uid?: string;
}

/** io.k8s.api.core.v1.ObjectReference */
export interface ObjectReference {
  readonly apiVersion?: string;
  readonly fieldPath?: string;
  readonly kind?: string;
  readonly name?: string;
  readonly namespace?: string;
  readonly resourceVersion?: string;
  readonly uid?: string;
}

/** io.k8s.api.node.v1.Overhead */
export interface Overhead {
  readonly podFixed?: Readonly<Record<string, Quantity>>;
}

/** io.k8s.apimachinery.pkg.apis.meta.v1.OwnerReference */
export interface OwnerReference {
  readonly apiVersion: string;
  readonly blockOwnerDeletion?: boolean;
  readonly controller?: boolean;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
}

/** io.k8s.api.core.v1.PersistentVolume */
export interface PersistentVolume {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: ObjectMeta;
  readonly spec: PersistentVolumeSpec;
  readonly status?: PersistentVolumeStatus;
}

/** io.k8s.api.core.v1.PersistentVolumeClaim */
export interface PersistentVolumeClaim {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: ObjectMeta;
  readonly spec: PersistentVolumeClaimSpec;
  readonly status?: PersistentVolumeClaimStatus;
}

/** io.k8s.api.core.v1.PersistentVolumeClaimCondition */
export interface PersistentVolumeClaimCondition {
  readonly lastProbeTime?: Time;
  readonly lastTransitionTime?: Time;
  readonly message?: string;
  readonly reason?: string;
  readonly status: string;
  readonly type: string;
}

/** io.k8s.api.core.v1.PersistentVolumeClaimSpec */
export interface PersistentVolumeClaimSpec {
  readonly accessModes?: readonly string[];
  readonly dataSource?: TypedLocalObjectReference;
  readonly dataSourceRef?: TypedObjectReference;
  readonly resources?: VolumeResourceRequirements;
  readonly selector?: LabelSelector;
  readonly storageClassName?: string;
  readonly volumeAttributesClassName?: string;
  readonly volumeMode?: string;
  readonly volumeName?: string;
}

/** io.k8s.api.core.v1.PersistentVolumeClaimStatus */
export interface PersistentVolumeClaimStatus {
  readonly accessModes?: readonly string[];
  readonly allocatedResourceStatuses?: Readonly<Record<string, string>>;
  readonly allocatedResources?: Readonly<Record<string, Quantity>>;
  readonly capacity?: Readonly<Record<string, Quantity>>;
  readonly conditions?: readonly PersistentVolumeClaimCondition[];
  readonly currentVolumeAttributesClassName?: string;
  readonly modifyVolumeStatus?: ModifyVolumeStatus;
  readonly phase?: string;
}

/** io.k8s.api.core.v1.PersistentVolumeClaimTemplate */
export interface PersistentVolumeClaimTemplate {
  readonly metadata?: ObjectMeta;
  readonly spec: PersistentVolumeClaimSpec;
}

/** io.k8s.api.core.v1.PersistentVolumeClaimVolumeSource */
export interface PersistentVolumeClaimVolumeSource {
  readonly claimName: string;
  readonly readOnly?: boolean;
}

/** io.k8s.api.core.v1.PersistentVolumeSpec */
export interface PersistentVolumeSpec {
  readonly accessModes?: readonly string[];
  readonly awsElasticBlockStore?: AWSElasticBlockStoreVolumeSource;
  readonly azureDisk?: AzureDiskVolumeSource;
  readonly azureFile?: AzureFilePersistentVolumeSource;
  readonly capacity?: Readonly<Record<string, Quantity>>;
  readonly cephfs?: CephFSPersistentVolumeSource;
  readonly cinder?: CinderPersistentVolumeSource;
  readonly claimRef?: ObjectReference;
  readonly csi?: CSIPersistentVolumeSource;
  readonly fc?: FCVolumeSource;
  readonly flexVolume?: FlexPersistentVolumeSource;
  readonly flocker?: FlockerVolumeSource;
  readonly gcePersistentDisk?: GCEPersistentDiskVolumeSource;
  readonly glusterfs?: GlusterfsPersistentVolumeSource;
  readonly hostPath?: HostPathVolumeSource;
  readonly iscsi?: ISCSIPersistentVolumeSource;
  readonly local?: LocalVolumeSource;
  readonly mountOptions?: readonly string[];
  readonly nfs?: NFSVolumeSource;
  readonly nodeAffinity?: VolumeNodeAffinity;
  readonly persistentVolumeReclaimPolicy?: string;
  readonly photonPersistentDisk?: PhotonPersistentDiskVolumeSource;
  readonly portworxVolume?: PortworxVolumeSource;
  readonly quobyte?: QuobyteVolumeSource;
  readonly rbd?: RBDPersistentVolumeSource;
  readonly scaleIO?: ScaleIOPersistentVolumeSource;
  readonly storageClassName?: string;
  readonly storageos?: StorageOSPersistentVolumeSource;
  readonly volumeAttributesClassName?: string;
  readonly volumeMode?: string;
  readonly vsphereVolume?: VsphereVirtualDiskVolumeSource;
}

/** io.k8s.api.core.v1.PersistentVolumeStatus */
export interface PersistentVolumeStatus {
  readonly lastPhaseTransitionTime?: Time;
  readonly message?: string;
  readonly phase?: string;
  readonly reason?: string;
}

/** io.k8s.api.core.v1.PhotonPersistentDiskVolumeSource */
export interface PhotonPersistentDiskVolumeSource {
  readonly fsType?: string;
  readonly pdID: string;
}

/** io.k8s.api.core.v1.Pod */
export interface Pod {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: ObjectMeta;
  readonly spec: PodSpec;
  readonly status?: PodStatus;
}

/** io.k8s.api.core.v1.PodAffinity */
export interface PodAffinity {
  readonly preferredDuringSchedulingIgnoredDuringExecution?: readonly WeightedPodAffinityTerm[];
  readonly requiredDuringSchedulingIgnoredDuringExecution?: readonly PodAffinityTerm[];
}

/** io.k8s.api.core.v1.PodAffinityTerm */
export interface PodAffinityTerm {
  readonly labelSelector?: LabelSelector;
  readonly matchLabelKeys?: readonly string[];
  readonly mismatchLabelKeys?: readonly string[];
  readonly namespaceSelector?: LabelSelector;
  readonly namespaces?: readonly string[];
  readonly topologyKey: string;
}

/** io.k8s.api.core.v1.PodAntiAffinity */
export interface PodAntiAffinity {
  readonly preferredDuringSchedulingIgnoredDuringExecution?: readonly WeightedPodAffinityTerm[];
  readonly requiredDuringSchedulingIgnoredDuringExecution?: readonly PodAffinityTerm[];
}

/** io.k8s.api.core.v1.PodCertificateProjection */
export interface PodCertificateProjection {
  readonly certificateChainPath?: string;
  readonly credentialBundlePath?: string;
  readonly keyPath?: string;
  readonly keyType: string;
  readonly maxExpirationSeconds?: number;
  readonly signerName: string;
  readonly userAnnotations?: Readonly<Record<string, string>>;
}

/** io.k8s.api.core.v1.PodCondition */
export interface PodCondition {
  readonly lastProbeTime?: Time;
  readonly lastTransitionTime?: Time;
  readonly message?: string;
  readonly observedGeneration?: number;
  readonly reason?: string;
  readonly status: string;
  readonly type: string;
}

/** io.k8s.api.core.v1.PodDNSConfig */
export interface PodDNSConfig {
  readonly nameservers?: readonly string[];
  readonly options?: readonly PodDNSConfigOption[];
  readonly searches?: readonly string[];
}

/** io.k8s.api.core.v1.PodDNSConfigOption */
export interface PodDNSConfigOption {
  readonly name?: string;
  readonly value?: string;
}

/** io.k8s.api.core.v1.PodExtendedResourceClaimStatus */
export interface PodExtendedResourceClaimStatus {
  readonly requestMappings: readonly ContainerExtendedResourceRequest[];
  readonly resourceClaimName: string;
}

/** io.k8s.api.batch.v1.PodFailurePolicy */
export interface PodFailurePolicy {
  readonly rules: readonly PodFailurePolicyRule[];
}

/** io.k8s.api.batch.v1.PodFailurePolicyOnExitCodesRequirement */
export interface PodFailurePolicyOnExitCodesRequirement {
  readonly containerName?: string;
  readonly operator: string;
  readonly values: readonly number[];
}

/** io.k8s.api.batch.v1.PodFailurePolicyOnPodConditionsPattern */
export interface PodFailurePolicyOnPodConditionsPattern {
  readonly status?: string;
  readonly type: string;
}

/** io.k8s.api.batch.v1.PodFailurePolicyRule */
export interface PodFailurePolicyRule {
  readonly action: string;
  readonly onExitCodes?: PodFailurePolicyOnExitCodesRequirement;
  readonly onPodConditions?: readonly PodFailurePolicyOnPodConditionsPattern[];
}

/** io.k8s.api.core.v1.PodIP */
export interface PodIP {
  readonly ip: string;
}

/** io.k8s.api.core.v1.PodList */
export interface PodList {
  readonly apiVersion?: string;
  readonly items: readonly Pod[];
  readonly kind?: string;
  readonly metadata?: ListMeta;
}

/** io.k8s.api.core.v1.PodOS */
export interface PodOS {
  readonly name: string;
}

/** io.k8s.api.core.v1.PodReadinessGate */
export interface PodReadinessGate {
  readonly conditionType: string;
}

/** io.k8s.api.core.v1.PodResourceClaim */
export interface PodResourceClaim {
  readonly name: string;
  readonly resourceClaimName?: string;
  readonly resourceClaimTemplateName?: string;
}

/** io.k8s.api.core.v1.PodResourceClaimStatus */
export interface PodResourceClaimStatus {
  readonly name: string;
  readonly resourceClaimName?: string;
}

/** io.k8s.api.core.v1.PodSchedulingGate */
export interface PodSchedulingGate {
  readonly name: string;
}

/** io.k8s.api.core.v1.PodSchedulingGroup */
export interface PodSchedulingGroup {
  readonly podGroupName?: string;
}

/** io.k8s.api.core.v1.PodSecurityContext */
export interface PodSecurityContext {
  readonly appArmorProfile?: AppArmorProfile;
  readonly fsGroup?: number;
  readonly fsGroupChangePolicy?: string;
  readonly runAsGroup?: number;
  readonly runAsNonRoot?: boolean;
  readonly runAsUser?: number;
  readonly seLinuxChangePolicy?: string;
  readonly seLinuxOptions?: SELinuxOptions;
  readonly seccompProfile?: SeccompProfile;
  readonly supplementalGroups?: readonly number[];
  readonly supplementalGroupsPolicy?: string;
  readonly sysctls?: readonly Sysctl[];
  readonly windowsOptions?: WindowsSecurityContextOptions;
}

/** io.k8s.api.core.v1.PodSpec */
export interface PodSpec {
  readonly activeDeadlineSeconds?: number;
  readonly affinity?: Affinity;
  readonly automountServiceAccountToken?: boolean;
  readonly containers: readonly Container[];
  readonly dnsConfig?: PodDNSConfig;
  readonly dnsPolicy?: string;
  readonly enableServiceLinks?: boolean;
  readonly ephemeralContainers?: readonly EphemeralContainer[];
  readonly hostAliases?: readonly HostAlias[];
  readonly hostIPC?: boolean;
  readonly hostNetwork?: boolean;
  readonly hostPID?: boolean;
  readonly hostUsers?: boolean;
  readonly hostname?: string;
  readonly hostnameOverride?: string;
  readonly imagePullSecrets?: readonly LocalObjectReference[];
  readonly initContainers?: readonly Container[];
  readonly nodeName?: string;
  readonly nodeSelector?: Readonly<Record<string, string>>;
  readonly os?: PodOS;
  readonly overhead?: Readonly<Record<string, Quantity>>;
  readonly preemptionPolicy?: string;
  readonly priority?: number;
  readonly priorityClassName?: string;
  readonly readinessGates?: readonly PodReadinessGate[];
  readonly resourceClaims?: readonly PodResourceClaim[];
  readonly resources?: ResourceRequirements;
  readonly restartPolicy?: string;
  readonly runtimeClassName?: string;
  readonly schedulerName?: string;
  readonly schedulingGates?: readonly PodSchedulingGate[];
  readonly schedulingGroup?: PodSchedulingGroup;
  readonly securityContext?: PodSecurityContext;
  readonly serviceAccount?: string;
  readonly serviceAccountName?: string;
  readonly setHostnameAsFQDN?: boolean;
  readonly shareProcessNamespace?: boolean;
  readonly subdomain?: string;
  readonly terminationGracePeriodSeconds?: number;
  readonly tolerations?: readonly Toleration[];
  readonly topologySpreadConstraints?: readonly TopologySpreadConstraint[];
  readonly volumes?: readonly Volume[];
}

/** io.k8s.api.core.v1.PodStatus */
export interface PodStatus {
  readonly allocatedResources?: Readonly<Record<string, Quantity>>;
  readonly conditions?: readonly PodCondition[];
  readonly containerStatuses?: readonly ContainerStatus[];
  readonly ephemeralContainerStatuses?: readonly ContainerStatus[];
  readonly extendedResourceClaimStatus?: PodExtendedResourceClaimStatus;
  readonly hostIP?: string;
  readonly hostIPs?: readonly HostIP[];
  readonly initContainerStatuses?: readonly ContainerStatus[];
  readonly message?: string;
  readonly nodeAllocatableResourceClaimStatuses?: readonly NodeAllocatableResourceClaimStatus[];
  readonly nominatedNodeName?: string;
  readonly observedGeneration?: number;
  readonly phase?: string;
  readonly podIP?: string;
  readonly podIPs?: readonly PodIP[];
  readonly qosClass?: string;
  readonly reason?: string;
  readonly resize?: string;
  readonly resourceClaimStatuses?: readonly PodResourceClaimStatus[];
  readonly resources?: ResourceRequirements;
  readonly startTime?: Time;
}

/** io.k8s.api.core.v1.PodTemplateSpec */
export interface PodTemplateSpec {
  readonly metadata?: ObjectMeta;
  readonly spec?: PodSpec;
}

/** io.k8s.api.core.v1.PortStatus */
export interface PortStatus {
  readonly error?: string;
  readonly port: number;
  readonly protocol: string;
}

/** io.k8s.api.core.v1.PortworxVolumeSource */
export interface PortworxVolumeSource {
  readonly fsType?: string;
  readonly readOnly?: boolean;
  readonly volumeID: string;
}

/** io.k8s.apimachinery.pkg.apis.meta.v1.Preconditions */
export interface Preconditions {
  readonly resourceVersion?: string;
  readonly uid?: string;
}

/** io.k8s.api.core.v1.PreferredSchedulingTerm */
export interface PreferredSchedulingTerm {
  readonly preference: NodeSelectorTerm;
  readonly weight: number;
}

/** io.k8s.api.scheduling.v1.PriorityClass */
export interface PriorityClass {
  readonly apiVersion?: string;
  readonly description?: string;
  readonly globalDefault?: boolean;
  readonly kind?: string;
  readonly metadata: ObjectMeta;
  readonly preemptionPolicy?: string;
  readonly value?: number;
}

/** io.k8s.api.core.v1.Probe */
export interface Probe {
  readonly exec?: ExecAction;
  readonly failureThreshold?: number;
  readonly grpc?: GRPCAction;
  readonly httpGet?: HTTPGetAction;
  readonly initialDelaySeconds?: number;
  readonly periodSeconds?: number;
  readonly successThreshold?: number;
  readonly tcpSocket?: TCPSocketAction;
  readonly terminationGracePeriodSeconds?: number;
  readonly timeoutSeconds?: number;
}

/** io.k8s.api.core.v1.ProjectedVolumeSource */
export interface ProjectedVolumeSource {
  readonly defaultMode?: number;
  readonly sources?: readonly VolumeProjection[];
}

/** io.k8s.api.core.v1.QuobyteVolumeSource */
export interface QuobyteVolumeSource {
  readonly group?: string;
  readonly readOnly?: boolean;
  readonly registry: string;
  readonly tenant?: string;
  readonly user?: string;
  readonly volume: string;
}

/** io.k8s.api.core.v1.RBDPersistentVolumeSource */
export interface RBDPersistentVolumeSource {
  readonly fsType?: string;
  readonly image: string;
  readonly keyring?: string;
  readonly monitors: readonly string[];
  readonly pool?: string;
  readonly readOnly?: boolean;
  readonly secretRef?: SecretReference;
  readonly user?: string;
}

/** io.k8s.api.core.v1.RBDVolumeSource */
export interface RBDVolumeSource {
  readonly fsType?: string;
  readonly image: string;
  readonly keyring?: string;
  readonly monitors: readonly string[];
  readonly pool?: string;
  readonly readOnly?: boolean;
  readonly secretRef?: LocalObjectReference;
  readonly user?: string;
}

/** io.k8s.api.apps.v1.ReplicaSet */
export interface ReplicaSet {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: ObjectMeta;
  readonly spec: ReplicaSetSpec;
  readonly status?: ReplicaSetStatus;
}

/** io.k8s.api.apps.v1.ReplicaSetCondition */
export interface ReplicaSetCondition {
  readonly lastTransitionTime?: Time;
  readonly message?: string;
  readonly reason?: string;
  readonly status: string;
  readonly type: string;
}

/** io.k8s.api.apps.v1.ReplicaSetSpec */
export interface ReplicaSetSpec {
  readonly minReadySeconds?: number;
  readonly replicas?: number;
  readonly selector: LabelSelector;
  readonly template?: PodTemplateSpec;
}

/** io.k8s.api.apps.v1.ReplicaSetStatus */
export interface ReplicaSetStatus {
  readonly availableReplicas?: number;
  readonly conditions?: readonly ReplicaSetCondition[];
  readonly fullyLabeledReplicas?: number;
  readonly observedGeneration?: number;
  readonly readyReplicas?: number;
  readonly replicas: number;
  readonly terminatingReplicas?: number;
}

/** io.k8s.api.authorization.v1.ResourceAttributes */
export interface ResourceAttributes {
  readonly fieldSelector?: FieldSelectorAttributes;
  readonly group?: string;
  readonly labelSelector?: LabelSelectorAttributes;
  readonly name?: string;
  readonly namespace?: string;
  readonly resource?: string;
  readonly subresource?: string;
  readonly verb?: string;
  readonly version?: string;
}

/** io.k8s.api.core.v1.ResourceClaim */
export interface ResourceClaim {
  readonly name: string;
  readonly request?: string;
}

/** io.k8s.api.core.v1.ResourceFieldSelector */
export interface ResourceFieldSelector {
  readonly containerName?: string;
  readonly divisor?: Quantity;
  readonly resource: string;
}

/** io.k8s.api.core.v1.ResourceHealth */
export interface ResourceHealth {
  readonly health?: string;
  readonly message?: string;
  readonly resourceID: string;
}

/** io.k8s.api.core.v1.ResourceRequirements */
export interface ResourceRequirements {
  readonly claims?: readonly ResourceClaim[];
  readonly limits?: Readonly<Record<string, Quantity>>;
  readonly requests?: Readonly<Record<string, Quantity>>;
}

/** io.k8s.api.authorization.v1.ResourceRule */
export interface ResourceRule {
  readonly apiGroups?: readonly string[];
  readonly resourceNames?: readonly string[];
  readonly resources?: readonly string[];
  readonly verbs: readonly string[];
}

/** io.k8s.api.core.v1.ResourceStatus */
export interface ResourceStatus {
  readonly name: string;
  readonly resources?: readonly ResourceHealth[];
}

/** io.k8s.api.apps.v1.RollingUpdateDaemonSet */
export interface RollingUpdateDaemonSet {
  readonly maxSurge?: IntOrString;
  readonly maxUnavailable?: IntOrString;
}

/** io.k8s.api.apps.v1.RollingUpdateDeployment */
export interface RollingUpdateDeployment {
  readonly maxSurge?: IntOrString;
  readonly maxUnavailable?: IntOrString;
}

/** io.k8s.api.apps.v1.RollingUpdateStatefulSetStrategy */
export interface RollingUpdateStatefulSetStrategy {
  readonly maxUnavailable?: IntOrString;
  readonly partition?: number;
}

/** io.k8s.api.node.v1.RuntimeClass */
export interface RuntimeClass {
  readonly apiVersion?: string;
  readonly handler: string;
  readonly kind?: string;
  readonly metadata: ObjectMeta;
  readonly overhead?: Overhead;
  readonly scheduling?: Scheduling;
}

/** io.k8s.api.core.v1.SELinuxOptions */
export interface SELinuxOptions {
  readonly level?: string;
  readonly role?: string;
  readonly type?: string;
  readonly user?: string;
}

/** io.k8s.api.autoscaling.v1.Scale */
export interface Scale {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: ObjectMeta;
  readonly spec: ScaleSpec;
  readonly status?: ScaleStatus;
}

/** io.k8s.api.core.v1.ScaleIOPersistentVolumeSource */
export interface ScaleIOPersistentVolumeSource {
  readonly fsType?: string;
  readonly gateway: string;
  readonly protectionDomain?: string;
  readonly readOnly?: boolean;
  readonly secretRef: SecretReference;
  readonly sslEnabled?: boolean;
  readonly storageMode?: string;
  readonly storagePool?: string;
  readonly system: string;
  readonly volumeName?: string;
}

/** io.k8s.api.core.v1.ScaleIOVolumeSource */
export interface ScaleIOVolumeSource {
  readonly fsType?: string;
  readonly gateway: string;
  readonly protectionDomain?: string;
  readonly readOnly?: boolean;
  readonly secretRef: LocalObjectReference;
  readonly sslEnabled?: boolean;
  readonly storageMode?: string;
  readonly storagePool?: string;
  readonly system: string;
  readonly volumeName?: string;
}

/** io.k8s.api.autoscaling.v1.ScaleSpec */
export interface ScaleSpec {
  readonly replicas?: number;
}

/** io.k8s.api.autoscaling.v1.ScaleStatus */
export interface ScaleStatus {
  readonly replicas: number;
  readonly selector?: string;
}

/** io.k8s.api.node.v1.Scheduling */
export interface Scheduling {
  readonly nodeSelector?: Readonly<Record<string, string>>;
  readonly tolerations?: readonly Toleration[];
}

/** io.k8s.api.core.v1.SeccompProfile */
export interface SeccompProfile {
  readonly localhostProfile?: string;
  readonly type: string;
}

/** io.k8s.api.core.v1.Secret */
export interface Secret {
  readonly apiVersion?: string;
  readonly data?: Readonly<Record<string, string>>;
  readonly immutable?: boolean;
  readonly kind?: string;
  readonly metadata: ObjectMeta;
  readonly stringData?: Readonly<Record<string, string>>;
  readonly type?: string;
}

/** io.k8s.api.core.v1.SecretEnvSource */
export interface SecretEnvSource {
  readonly name?: string;
  readonly optional?: boolean;
}

/** io.k8s.api.core.v1.SecretKeySelector */
export interface SecretKeySelector {
  readonly key: string;
  readonly name?: string;
  readonly optional?: boolean;
}

/** io.k8s.api.core.v1.SecretProjection */
export interface SecretProjection {
  readonly items?: readonly KeyToPath[];
  readonly name?: string;
  readonly optional?: boolean;
}

/** io.k8s.api.core.v1.SecretReference */
export interface SecretReference {
  readonly name?: string;
  readonly namespace?: string;
}

/** io.k8s.api.core.v1.SecretVolumeSource */
export interface SecretVolumeSource {
  readonly defaultMode?: number;
  readonly items?: readonly KeyToPath[];
  readonly optional?: boolean;
  readonly secretName?: string;
}

/** io.k8s.api.core.v1.SecurityContext */
export interface SecurityContext {
  readonly allowPrivilegeEscalation?: boolean;
  readonly appArmorProfile?: AppArmorProfile;
  readonly capabilities?: Capabilities;
  readonly privileged?: boolean;
  readonly procMount?: string;
  readonly readOnlyRootFilesystem?: boolean;
  readonly runAsGroup?: number;
  readonly runAsNonRoot?: boolean;
  readonly runAsUser?: number;
  readonly seLinuxOptions?: SELinuxOptions;
  readonly seccompProfile?: SeccompProfile;
  readonly windowsOptions?: WindowsSecurityContextOptions;
}

/** io.k8s.api.authorization.v1.SelfSubjectAccessReview */
export interface SelfSubjectAccessReview {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: ObjectMeta;
  readonly spec: SelfSubjectAccessReviewSpec;
  readonly status?: SubjectAccessReviewStatus;
}

/** io.k8s.api.authorization.v1.SelfSubjectAccessReviewSpec */
export interface SelfSubjectAccessReviewSpec {
  readonly nonResourceAttributes?: NonResourceAttributes;
  readonly resourceAttributes?: ResourceAttributes;
}

/** io.k8s.api.authentication.v1.SelfSubjectReview */
export interface SelfSubjectReview {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: ObjectMeta;
  readonly status?: SelfSubjectReviewStatus;
}

/** io.k8s.api.authentication.v1.SelfSubjectReviewStatus */
export interface SelfSubjectReviewStatus {
  readonly userInfo?: UserInfo;
}

/** io.k8s.api.authorization.v1.SelfSubjectRulesReview */
export interface SelfSubjectRulesReview {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: ObjectMeta;
  readonly spec: SelfSubjectRulesReviewSpec;
  readonly status?: SubjectRulesReviewStatus;
}

/** io.k8s.api.authorization.v1.SelfSubjectRulesReviewSpec */
export interface SelfSubjectRulesReviewSpec {
  readonly namespace?: string;
}

/** io.k8s.api.core.v1.Service */
export interface Service {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: ObjectMeta;
  readonly spec: ServiceSpec;
  readonly status?: ServiceStatus;
}

/** io.k8s.api.core.v1.ServiceAccount */
export interface ServiceAccount {
  readonly apiVersion?: string;
  readonly automountServiceAccountToken?: boolean;
  readonly imagePullSecrets?: readonly LocalObjectReference[];
  readonly kind?: string;
  readonly metadata: ObjectMeta;
  readonly secrets?: readonly ObjectReference[];
}

/** io.k8s.api.core.v1.ServiceAccountTokenProjection */
export interface ServiceAccountTokenProjection {
  readonly audience?: string;
  readonly expirationSeconds?: number;
  readonly path: string;
}

/** io.k8s.api.core.v1.ServicePort */
export interface ServicePort {
  readonly appProtocol?: string;
  readonly name?: string;
  readonly nodePort?: number;
  readonly port: number;
  readonly protocol?: string;
  readonly targetPort?: IntOrString;
}

/** io.k8s.api.core.v1.ServiceSpec */
export interface ServiceSpec {
  readonly allocateLoadBalancerNodePorts?: boolean;
  readonly clusterIP?: string;
  readonly clusterIPs?: readonly string[];
  readonly externalIPs?: readonly string[];
  readonly externalName?: string;
  readonly externalTrafficPolicy?: string;
  readonly healthCheckNodePort?: number;
  readonly internalTrafficPolicy?: string;
  readonly ipFamilies?: readonly string[];
  readonly ipFamilyPolicy?: string;
  readonly loadBalancerClass?: string;
  readonly loadBalancerIP?: string;
  readonly loadBalancerSourceRanges?: readonly string[];
  readonly ports?: readonly ServicePort[];
  readonly publishNotReadyAddresses?: boolean;
  readonly selector?: Readonly<Record<string, string>>;
  readonly sessionAffinity?: string;
  readonly sessionAffinityConfig?: SessionAffinityConfig;
  readonly trafficDistribution?: string;
  readonly type?: string;
}

/** io.k8s.api.core.v1.ServiceStatus */
export interface ServiceStatus {
  readonly conditions?: readonly Condition[];
  readonly loadBalancer?: LoadBalancerStatus;
}

/** io.k8s.api.core.v1.SessionAffinityConfig */
export interface SessionAffinityConfig {
  readonly clientIP?: ClientIPConfig;
}

/** io.k8s.apimachinery.pkg.apis.meta.v1.ShardInfo */
export interface ShardInfo {
  readonly selector: string;
}

/** io.k8s.api.core.v1.SleepAction */
export interface SleepAction {
  readonly seconds: number;
}

/** io.k8s.api.apps.v1.StatefulSet */
export interface StatefulSet {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: ObjectMeta;
  readonly spec: StatefulSetSpec;
  readonly status?: StatefulSetStatus;
}

/** io.k8s.api.apps.v1.StatefulSetCondition */
export interface StatefulSetCondition {
  readonly lastTransitionTime?: Time;
  readonly message?: string;
  readonly reason?: string;
  readonly status: string;
  readonly type: string;
}

/** io.k8s.api.apps.v1.StatefulSetOrdinals */
export interface StatefulSetOrdinals {
  readonly start?: number;
}

/** io.k8s.api.apps.v1.StatefulSetPersistentVolumeClaimRetentionPolicy */
export interface StatefulSetPersistentVolumeClaimRetentionPolicy {
  readonly whenDeleted?: string;
  readonly whenScaled?: string;
}

/** io.k8s.api.apps.v1.StatefulSetSpec */
export interface StatefulSetSpec {
  readonly minReadySeconds?: number;
  readonly ordinals?: StatefulSetOrdinals;
  readonly persistentVolumeClaimRetentionPolicy?: StatefulSetPersistentVolumeClaimRetentionPolicy;
  readonly podManagementPolicy?: string;
  readonly replicas?: number;
  readonly revisionHistoryLimit?: number;
  readonly selector: LabelSelector;
  readonly serviceName?: string;
  readonly template: PodTemplateSpec;
  readonly updateStrategy?: StatefulSetUpdateStrategy;
  readonly volumeClaimTemplates?: readonly PersistentVolumeClaim[];
}

/** io.k8s.api.apps.v1.StatefulSetStatus */
export interface StatefulSetStatus {
  readonly availableReplicas?: number;
  readonly collisionCount?: number;
  readonly conditions?: readonly StatefulSetCondition[];
  readonly currentReplicas?: number;
  readonly currentRevision?: string;
  readonly observedGeneration?: number;
  readonly readyReplicas?: number;
  readonly replicas: number;
  readonly updateRevision?: string;
  readonly updatedReplicas?: number;
}

/** io.k8s.api.apps.v1.StatefulSetUpdateStrategy */
export interface StatefulSetUpdateStrategy {
  readonly rollingUpdate?: RollingUpdateStatefulSetStrategy;
  readonly type?: string;
}

/** io.k8s.apimachinery.pkg.apis.meta.v1.Status */
export interface Status {
  readonly apiVersion?: string;
  readonly code?: number;
  readonly details?: StatusDetails;
  readonly kind?: string;
  readonly message?: string;
  readonly metadata?: ListMeta;
  readonly reason?: string;
  readonly status?: string;
}

/** io.k8s.apimachinery.pkg.apis.meta.v1.StatusCause */
export interface StatusCause {
  readonly field?: string;
  readonly message?: string;
  readonly reason?: string;
}

/** io.k8s.apimachinery.pkg.apis.meta.v1.StatusDetails */
export interface StatusDetails {
  readonly causes?: readonly StatusCause[];
  readonly group?: string;
  readonly kind?: string;
  readonly name?: string;
  readonly retryAfterSeconds?: number;
  readonly uid?: string;
}

/** io.k8s.api.storage.v1.StorageClass */
export interface StorageClass {
  readonly allowVolumeExpansion?: boolean;
  readonly allowedTopologies?: readonly TopologySelectorTerm[];
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: ObjectMeta;
  readonly mountOptions?: readonly string[];
  readonly parameters?: Readonly<Record<string, string>>;
  readonly provisioner: string;
  readonly reclaimPolicy?: string;
  readonly volumeBindingMode?: string;
}

/** io.k8s.api.core.v1.StorageOSPersistentVolumeSource */
export interface StorageOSPersistentVolumeSource {
  readonly fsType?: string;
  readonly readOnly?: boolean;
  readonly secretRef?: ObjectReference;
  readonly volumeName?: string;
  readonly volumeNamespace?: string;
}

/** io.k8s.api.core.v1.StorageOSVolumeSource */
export interface StorageOSVolumeSource {
  readonly fsType?: string;
  readonly readOnly?: boolean;
  readonly secretRef?: LocalObjectReference;
  readonly volumeName?: string;
  readonly volumeNamespace?: string;
}

/** io.k8s.api.authorization.v1.SubjectAccessReview */
export interface SubjectAccessReview {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: ObjectMeta;
  readonly spec: SubjectAccessReviewSpec;
  readonly status?: SubjectAccessReviewStatus;
}

/** io.k8s.api.authorization.v1.SubjectAccessReviewSpec */
export interface SubjectAccessReviewSpec {
  readonly extra?: Readonly<Record<string, readonly string[]>>;
  readonly groups?: readonly string[];
  readonly nonResourceAttributes?: NonResourceAttributes;
  readonly resourceAttributes?: ResourceAttributes;
  readonly uid?: string;
  readonly user?: string;
}

/** io.k8s.api.authorization.v1.SubjectAccessReviewStatus */
export interface SubjectAccessReviewStatus {
  readonly allowed: boolean;
  readonly denied?: boolean;
  readonly evaluationError?: string;
  readonly reason?: string;
}

/** io.k8s.api.authorization.v1.SubjectRulesReviewStatus */
export interface SubjectRulesReviewStatus {
  readonly evaluationError?: string;
  readonly incomplete: boolean;
  readonly nonResourceRules: readonly NonResourceRule[];
  readonly resourceRules: readonly ResourceRule[];
}

/** io.k8s.api.batch.v1.SuccessPolicy */
export interface SuccessPolicy {
  readonly rules: readonly SuccessPolicyRule[];
}

/** io.k8s.api.batch.v1.SuccessPolicyRule */
export interface SuccessPolicyRule {
  readonly succeededCount?: number;
  readonly succeededIndexes?: string;
}

/** io.k8s.api.core.v1.Sysctl */
export interface Sysctl {
  readonly name: string;
  readonly value: string;
}

/** io.k8s.api.core.v1.TCPSocketAction */
export interface TCPSocketAction {
  readonly host?: string;
  readonly port: IntOrString;
}

/** io.k8s.api.core.v1.Taint */
export interface Taint {
  readonly effect: string;
  readonly key: string;
  readonly timeAdded?: Time;
  readonly value?: string;
}

/** io.k8s.api.authentication.v1.TokenRequest */
export interface TokenRequest {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: ObjectMeta;
  readonly spec: TokenRequestSpec;
  readonly status?: TokenRequestStatus;
}

/** io.k8s.api.authentication.v1.TokenRequestSpec */
export interface TokenRequestSpec {
  readonly audiences?: readonly string[];
  readonly boundObjectRef?: BoundObjectReference;
  readonly expirationSeconds?: number;
}

/** io.k8s.api.authentication.v1.TokenRequestStatus */
export interface TokenRequestStatus {
  readonly expirationTimestamp?: Time;
  readonly token?: string;
}

/** io.k8s.api.authentication.v1.TokenReview */
export interface TokenReview {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: ObjectMeta;
  readonly spec: TokenReviewSpec;
  readonly status?: TokenReviewStatus;
}

/** io.k8s.api.authentication.v1.TokenReviewSpec */
export interface TokenReviewSpec {
  readonly audiences?: readonly string[];
  readonly token: string;
}

/** io.k8s.api.authentication.v1.TokenReviewStatus */
export interface TokenReviewStatus {
  readonly audiences?: readonly string[];
  readonly authenticated?: boolean;
  readonly error?: string;
  readonly user?: UserInfo;
}

/** io.k8s.api.core.v1.Toleration */
export interface Toleration {
  readonly effect?: string;
  readonly key?: string;
  readonly operator?: string;
  readonly tolerationSeconds?: number;
  readonly value?: string;
}

/** io.k8s.api.core.v1.TopologySelectorLabelRequirement */
export interface TopologySelectorLabelRequirement {
  readonly key: string;
  readonly values: readonly string[];
}

/** io.k8s.api.core.v1.TopologySelectorTerm */
export interface TopologySelectorTerm {
  readonly matchLabelExpressions?: readonly TopologySelectorLabelRequirement[];
}

/** io.k8s.api.core.v1.TopologySpreadConstraint */
export interface TopologySpreadConstraint {
  readonly labelSelector?: LabelSelector;
  readonly matchLabelKeys?: readonly string[];
  readonly maxSkew: number;
  readonly minDomains?: number;
  readonly nodeAffinityPolicy?: string;
  readonly nodeTaintsPolicy?: string;
  readonly topologyKey: string;
  readonly whenUnsatisfiable: string;
}

/** io.k8s.api.core.v1.TypedLocalObjectReference */
export interface TypedLocalObjectReference {
  readonly apiGroup?: string;
  readonly kind: string;
  readonly name: string;
}

/** io.k8s.api.core.v1.TypedObjectReference */
export interface TypedObjectReference {
  readonly apiGroup?: string;
  readonly kind: string;
  readonly name: string;
  readonly namespace?: string;
}

/** io.k8s.api.batch.v1.UncountedTerminatedPods */
export interface UncountedTerminatedPods {
  readonly failed?: readonly string[];
  readonly succeeded?: readonly string[];
}

/** io.k8s.api.authentication.v1.UserInfo */
export interface UserInfo {
  readonly extra?: Readonly<Record<string, readonly string[]>>;
  readonly groups?: readonly string[];
  readonly uid?: string;
  readonly username?: string;
}

/** io.k8s.api.core.v1.Volume */
export interface Volume {
  readonly awsElasticBlockStore?: AWSElasticBlockStoreVolumeSource;
  readonly azureDisk?: AzureDiskVolumeSource;
  readonly azureFile?: AzureFileVolumeSource;
  readonly cephfs?: CephFSVolumeSource;
  readonly cinder?: CinderVolumeSource;
  readonly configMap?: ConfigMapVolumeSource;
  readonly csi?: CSIVolumeSource;
  readonly downwardAPI?: DownwardAPIVolumeSource;
  readonly emptyDir?: EmptyDirVolumeSource;
  readonly ephemeral?: EphemeralVolumeSource;
  readonly fc?: FCVolumeSource;
  readonly flexVolume?: FlexVolumeSource;
  readonly flocker?: FlockerVolumeSource;
  readonly gcePersistentDisk?: GCEPersistentDiskVolumeSource;
  readonly gitRepo?: GitRepoVolumeSource;
  readonly glusterfs?: GlusterfsVolumeSource;
  readonly hostPath?: HostPathVolumeSource;
  readonly image?: ImageVolumeSource;
  readonly iscsi?: ISCSIVolumeSource;
  readonly name: string;
  readonly nfs?: NFSVolumeSource;
  readonly persistentVolumeClaim?: PersistentVolumeClaimVolumeSource;
  readonly photonPersistentDisk?: PhotonPersistentDiskVolumeSource;
  readonly portworxVolume?: PortworxVolumeSource;
  readonly projected?: ProjectedVolumeSource;
  readonly quobyte?: QuobyteVolumeSource;
  readonly rbd?: RBDVolumeSource;
  readonly scaleIO?: ScaleIOVolumeSource;
  readonly secret?: SecretVolumeSource;
  readonly storageos?: StorageOSVolumeSource;
  readonly vsphereVolume?: VsphereVirtualDiskVolumeSource;
}

/** io.k8s.api.storage.v1.VolumeAttachment */
export interface VolumeAttachment {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: ObjectMeta;
  readonly spec: VolumeAttachmentSpec;
  readonly status?: VolumeAttachmentStatus;
}

/** io.k8s.api.storage.v1.VolumeAttachmentSource */
export interface VolumeAttachmentSource {
  readonly inlineVolumeSpec?: PersistentVolumeSpec;
  readonly persistentVolumeName?: string;
}

/** io.k8s.api.storage.v1.VolumeAttachmentSpec */
export interface VolumeAttachmentSpec {
  readonly attacher: string;
  readonly nodeName: string;
  readonly source: VolumeAttachmentSource;
}

/** io.k8s.api.storage.v1.VolumeAttachmentStatus */
export interface VolumeAttachmentStatus {
  readonly attachError?: VolumeError;
  readonly attached: boolean;
  readonly attachmentMetadata?: Readonly<Record<string, string>>;
  readonly detachError?: VolumeError;
}

/** io.k8s.api.core.v1.VolumeDevice */
export interface VolumeDevice {
  readonly devicePath: string;
  readonly name: string;
}

/** io.k8s.api.storage.v1.VolumeError */
export interface VolumeError {
  readonly errorCode?: number;
  readonly message?: string;
  readonly time?: Time;
}

/** io.k8s.api.core.v1.VolumeMount */
export interface VolumeMount {
  readonly mountPath: string;
  readonly mountPropagation?: string;
  readonly name: string;
  readonly readOnly?: boolean;
  readonly recursiveReadOnly?: string;
  readonly subPath?: string;
  readonly subPathExpr?: string;
}

/** io.k8s.api.core.v1.VolumeMountStatus */
export interface VolumeMountStatus {
  readonly mountPath: string;
  readonly name: string;
  readonly readOnly?: boolean;
  readonly recursiveReadOnly?: string;
  readonly volumeStatus?: VolumeStatus;
}

/** io.k8s.api.core.v1.VolumeNodeAffinity */
export interface VolumeNodeAffinity {
  readonly required?: NodeSelector;
}

/** io.k8s.api.storage.v1.VolumeNodeResources */
export interface VolumeNodeResources {
  readonly count?: number;
}

/** io.k8s.api.core.v1.VolumeProjection */
export interface VolumeProjection {
  readonly clusterTrustBundle?: ClusterTrustBundleProjection;
  readonly configMap?: ConfigMapProjection;
  readonly downwardAPI?: DownwardAPIProjection;
  readonly podCertificate?: PodCertificateProjection;
  readonly secret?: SecretProjection;
  readonly serviceAccountToken?: ServiceAccountTokenProjection;
}

/** io.k8s.api.core.v1.VolumeResourceRequirements */
export interface VolumeResourceRequirements {
  readonly limits?: Readonly<Record<string, Quantity>>;
  readonly requests?: Readonly<Record<string, Quantity>>;
}

/** io.k8s.api.core.v1.VolumeStatus */
export interface VolumeStatus {
  readonly image?: ImageVolumeStatus;
}

/** io.k8s.api.core.v1.VsphereVirtualDiskVolumeSource */
export interface VsphereVirtualDiskVolumeSource {
  readonly fsType?: string;
  readonly storagePolicyID?: string;
  readonly storagePolicyName?: string;
  readonly volumePath: string;
}

/** io.k8s.api.core.v1.WeightedPodAffinityTerm */
export interface WeightedPodAffinityTerm {
  readonly podAffinityTerm: PodAffinityTerm;
  readonly weight: number;
}

/** io.k8s.api.core.v1.WindowsSecurityContextOptions */
export interface WindowsSecurityContextOptions {
  readonly gmsaCredentialSpec?: string;
  readonly gmsaCredentialSpecName?: string;
  readonly hostProcess?: boolean;
  readonly runAsUserName?: string;
}
