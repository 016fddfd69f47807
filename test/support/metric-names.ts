/** When a metric of Kubernetes' kubelet is on our page, or why it is not. */
export type MetricRule = "always" | "cluster" | "serving CSR" | { readonly leftOut: string };

const always = (...names: readonly string[]): [string, MetricRule][] => names.map((name) => [name, "always"]);
const leftOut = (why: string, ...names: readonly string[]): [string, MetricRule][] =>
  names.map((name) => [name, { leftOut: why }]);

/** Every metric of a kubelet v1.36 beside those of the Go runtime, by name without `kubelet_` where it has that. */
export const KUBELET_METRICS: ReadonlyMap<string, MetricRule> = new Map([
  ...always("node_name", "running_pods", "running_containers", "desired_pods", "active_pods", "working_pods"),
  ...always("containers_per_pod_count", "pod_worker_duration_seconds", "pod_worker_start_duration_seconds"),
  ...always("pod_start_duration_seconds", "pod_start_sli_duration_seconds", "pod_start_total_duration_seconds"),
  ...always("started_pods_total", "started_pods_errors_total", "started_containers_total"),
  ...always("started_containers_errors_total", "terminated_containers_total"),
  ...always("started_user_namespaced_pods_total", "started_user_namespaced_pods_errors_total"),
  ...always("restarted_pods_total", "orphaned_runtime_pods_total", "managed_ephemeral_containers"),
  ...always("admission_rejections_total", "preemptions", "evictions", "eviction_stats_age_seconds"),
  ...always("pleg_relist_duration_seconds", "pleg_relist_interval_seconds", "pleg_pod_relist_duration_seconds"),
  ...always("pleg_last_seen_seconds", "evented_pleg_connection_error_count", "evented_pleg_connection_success_count"),
  ...always("evented_pleg_connection_latency_seconds"),
  ...always("runtime_operations_total", "runtime_operations_errors_total", "runtime_operations_duration_seconds"),
  ...always("run_podsandbox_duration_seconds", "run_podsandbox_errors_total"),
  ...always("image_pull_duration_seconds", "image_manager_ensure_image_requests_total"),
  ...always("image_garbage_collected_total"),
  ...always("imagemanager_image_mustpull_checks_total", "imagemanager_ondisk_pullintents"),
  ...always("imagemanager_ondisk_pulledrecords"),
  ...always("image_volume_requested_total", "image_volume_mounted_succeed_total", "image_volume_mounted_errors_total"),
  ...always("cgroup_manager_duration_seconds", "cgroup_version"),
  ...always("http_requests_total", "http_requests_duration_seconds", "http_inflight_requests"),
  ...always("websocket_streaming_requests_total"),
  ...always("container_requested_resizes_total", "pod_resize_duration_milliseconds", "pod_pending_resizes"),
  ...always("pod_infeasible_resizes_total", "pod_in_progress_resizes", "pod_deferred_accepted_resizes_total"),
  ...always("lifecycle_handler_http_fallbacks_total", "sleep_action_terminated_early_total"),
  ...always("storage_operation_duration_seconds", "volume_manager_total_volumes"),
  ...always("orphan_pod_cleaned_volumes", "orphan_pod_cleaned_volumes_errors"),
  ...always("graceful_shutdown_start_time_seconds", "graceful_shutdown_end_time_seconds"),
  ...always("kubernetes_build_info", "process_start_time_seconds", "process_resident_memory_bytes"),
  ...always("kubernetes_feature_enabled", "process_cpu_seconds_total", "process_open_fds", "process_max_fds"),
  ...always("process_virtual_memory_bytes", "process_virtual_memory_max_bytes"),
  ...always("process_network_receive_bytes_total", "process_network_transmit_bytes_total"),
  ...always("metrics_provider", "container_log_filesystem_used_bytes"),
  ...always("volume_stats_capacity_bytes", "volume_stats_available_bytes", "volume_stats_used_bytes"),
  ...always("volume_stats_inodes", "volume_stats_inodes_free", "volume_stats_inodes_used"),
  ["mirror_pods", "cluster"],
  ["pod_status_sync_duration_seconds", "cluster"],
  ["rest_client_requests_total", "cluster"],
  ["rest_client_request_duration_seconds", "cluster"],
  ...["", "pre_kubelet_", "pre_registration_", "registration_", "post_registration_"].map(
    (part): [string, MetricRule] => [`node_startup_${part}duration_seconds`, "cluster"],
  ),
  ["certificate_manager_server_ttl_seconds", "serving CSR"],
  ["certificate_manager_server_rotation_seconds", "serving CSR"],
  ["server_expiration_renew_errors", "serving CSR"],
  ...leftOut(
    "only with a client certificate that the agent renews itself",
    ...["certificate_manager_client_ttl_seconds", "certificate_manager_client_expiration_renew_errors"],
  ),
  ...leftOut("internal to the scalability tests of Kubernetes", "first_network_pod_start_sli_duration_seconds"),
  ...leftOut(
    "only on Windows",
    ...["started_host_process_containers_total", "started_host_process_containers_errors_total"],
  ),
  ...leftOut("events are wake-ups here, and none is ever discarded", "pleg_discard_events"),
  ...leftOut("runtimes without RuntimeConfig keep their support", "cri_losing_support"),
  ...leftOut(
    "records of pulled images are read when they are needed, and not cached in memory",
    ...["imagemanager_inmemory_pullintents_usage_percent", "imagemanager_inmemory_pulledrecords_usage_percent"],
  ),
  ...leftOut(
    "only with credential provider plugins",
    ...["credential_provider_plugin_duration", "credential_provider_plugin_errors_total"],
    "credential_provider_config_info",
  ),
  ...always("volume_stats_health_status_abnormal", "volume_metric_collection_duration_seconds"),
  ...always("csi_operations_seconds", "volume_operation_total_seconds"),
  ...always("reconstruct_volume_operations_total", "reconstruct_volume_operations_errors_total"),
  ...always("force_cleaned_failed_volume_operations_total", "force_cleaned_failed_volume_operation_errors_total"),
  ...always("device_plugin_registration_total", "device_plugin_alloc_duration_seconds", "plugin_manager_total_plugins"),
  ...always("pod_resources_endpoint_requests_total", "pod_resources_endpoint_requests_list"),
  ...always("pod_resources_endpoint_requests_get_allocatable", "pod_resources_endpoint_requests_get"),
  ...always("pod_resources_endpoint_errors_get"),
  ...leftOut(
    "these calls always have an answer",
    ...["pod_resources_endpoint_errors_list", "pod_resources_endpoint_errors_get_allocatable"],
  ),
  ["dra_operations_duration_seconds", "cluster"],
  ["dra_resource_claims_in_use", "cluster"],
  ["dra_grpc_operations_duration_seconds", "cluster"],
  ["podcertificate_states", "cluster"],
  ...always("cpu_manager_pinning_requests_total", "cpu_manager_pinning_errors_total"),
  ...always("cpu_manager_shared_pool_size_millicores", "cpu_manager_exclusive_cpu_allocation_count"),
  ...always("cpu_manager_allocation_per_numa", "memory_manager_pinning_requests_total"),
  ...always("memory_manager_pinning_errors_total", "topology_manager_admission_requests_total"),
  ...always("topology_manager_admission_errors_total", "topology_manager_admission_duration_ms"),
  ...always("container_aligned_compute_resources_count", "container_aligned_compute_resources_failure_count"),
  ...leftOut(
    "the gate PodLevelResourceManagers is off and not supported",
    ...["resource_manager_allocations_total", "resource_manager_allocation_errors_total"],
    "resource_manager_container_assignments",
  ),
  ...leftOut(
    "only with the gate MemoryQoS",
    ...["memory_qos_node_memory_min_bytes", "memory_qos_node_memory_low_bytes"],
  ),
  ...leftOut("a gate that is off and not supported", "pod_watch_events_dropped_total"),
  ...["container", "pod_context_mismatch", "volume_context_mismatch"].flatMap((of) =>
    always(`volume_manager_selinux_${of}_errors_total`, `volume_manager_selinux_${of}_warnings_total`),
  ),
  ...always("volume_manager_selinux_volumes_admitted_total"),
]);

/** Names that are ours: what Kubernetes has no name for. */
const OURS = /^(kubelet_ts_|kubelet_event_loop_|kubelet_node_config_|prober_)/;

/**
 * What is wrong with a page of `/metrics`: names that should be there and are not, names that should not, and names that
 * nobody has written down. Empty when nothing is.
 */
export function metricProblems(page: string, place: readonly ("always" | "cluster" | "serving CSR")[]): string[] {
  const shown = new Set([...page.matchAll(/^# TYPE (\S+) /gm)].map(([, name = ""]) => name));
  const known = new Map([...KUBELET_METRICS].map(([name, rule]) => [fullName(name), rule]));
  const problems: string[] = [];
  for (const [name, rule] of known) {
    const isDue = typeof rule === "string" && place.includes(rule);
    if (isDue && !shown.has(name)) problems.push(`${name} is missing`);
    if (typeof rule === "object" && shown.has(name) && !/renews itself/.test(rule.leftOut))
      problems.push(`${name} is there, although: ${rule.leftOut}`);
  }
  for (const name of shown) if (!known.has(name) && !OURS.test(name)) problems.push(`${name} is in no table`);
  return problems;
}

/** Most names begin with `kubelet_`; those of other parts of Kubernetes do not. */
export function fullName(name: string): string {
  const isElsewhere = OTHERS.some((prefix) => name.startsWith(`${prefix}_`));
  return isElsewhere ? name : `kubelet_${name}`;
}

const OTHERS = [
  ...["kubernetes", "process", "rest_client", "resource_manager", "dra", "plugin_manager", "volume_manager"],
  ...["storage_operation", "csi_operations", "volume_operation", "reconstruct_volume", "force_cleaned"],
];
