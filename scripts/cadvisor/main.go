// The monitoring of cAdvisor in a program of its own: its manager with the metrics that a kubelet has it collect, its
// Prometheus page, and its REST API. The module of cAdvisor has no program; this one asks the manager what cAdvisor's asks.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/google/cadvisor/cache/memory"
	client1 "github.com/google/cadvisor/client"
	client2 "github.com/google/cadvisor/client/v2"
	"github.com/google/cadvisor/container"
	_ "github.com/google/cadvisor/container/containerd/install"
	"github.com/google/cadvisor/events"
	_ "github.com/google/cadvisor/fs/btrfs/install"
	_ "github.com/google/cadvisor/fs/nfs/install"
	_ "github.com/google/cadvisor/fs/overlay/install"
	_ "github.com/google/cadvisor/fs/tmpfs/install"
	_ "github.com/google/cadvisor/fs/vfs/install"
	v1 "github.com/google/cadvisor/info/v1"
	v2 "github.com/google/cadvisor/info/v2"
	"github.com/google/cadvisor/manager"
	"github.com/google/cadvisor/metrics"
	"github.com/google/cadvisor/utils/sysfs"
	"github.com/google/cadvisor/validate"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/utils/clock"
)

// What the kubelet of Kubernetes 1.36 has it collect.
var collected = container.MetricSet{
	container.CpuUsageMetrics:     struct{}{},
	container.MemoryUsageMetrics:  struct{}{},
	container.DiskIOMetrics:       struct{}{},
	container.DiskUsageMetrics:    struct{}{},
	container.NetworkUsageMetrics: struct{}{},
	container.AppMetrics:          struct{}{},
	container.ProcessMetrics:      struct{}{},
	container.OOMMetrics:          struct{}{},
}

// What it has shown: the load is, though it is not collected, and pressure where the kernel counts it for cgroups.
func shown() container.MetricSet {
	set := container.MetricSet{container.CpuLoadMetrics: struct{}{}}
	if _, err := os.Stat("/sys/fs/cgroup/cpu.pressure"); err == nil {
		collected[container.PressureMetrics] = struct{}{}
	}
	for kind := range collected {
		set[kind] = struct{}{}
	}
	return set
}

func main() {
	roots := flag.String("cgroups", "", "cgroups to watch below the root, separated by commas")
	target := flag.String("check", "", "asks the agent at this address with cAdvisor's own clients, and exits")
	flag.Parse()
	if *target != "" {
		check(*target)
		return
	}
	included := shown()
	interval, dynamic := time.Second, false
	housekeeping := manager.HousekeepingConfig{Interval: &interval, AllowDynamic: &dynamic}
	m, err := manager.New(memory.New(time.Minute, nil), sysfs.NewRealSysFs(), housekeeping, collected,
		http.DefaultClient, strings.Split(*roots, ","), nil, "", 0)
	failOn(err)
	failOn(m.Start())
	registry := prometheus.NewRegistry()
	options := v2.RequestOptions{IdType: v2.TypeName, Count: 1, Recursive: true}
	registry.MustRegister(
		metrics.NewPrometheusCollector(m, labels, included, clock.RealClock{}, options),
		metrics.NewPrometheusMachineCollector(m, included))
	http.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	http.HandleFunc("/validate/", func(w http.ResponseWriter, _ *http.Request) { failOn(validate.HandleRequest(w, m)) })
	http.HandleFunc("/api/", func(w http.ResponseWriter, r *http.Request) { answer(w, r, m) })
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	failOn(err)
	fmt.Println(listener.Addr())
	failOn(http.Serve(listener, nil))
}

func failOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// The labels that a kubelet gives the series of a container.
func labels(c *v1.ContainerInfo) map[string]string {
	of := c.Spec.Labels
	set := map[string]string{
		metrics.LabelID: c.Name, metrics.LabelName: "", metrics.LabelImage: c.Spec.Image,
		"container": of["io.kubernetes.container.name"], "pod": of["io.kubernetes.pod.name"],
		"namespace": of["io.kubernetes.pod.namespace"],
	}
	if len(c.Aliases) > 0 {
		set[metrics.LabelName] = c.Aliases[0]
	}
	return set
}

func answer(w http.ResponseWriter, r *http.Request, m manager.Manager) {
	parts := strings.SplitN(strings.TrimPrefix(r.URL.Path, "/api/"), "/", 3)
	parts = append(parts, "", "")
	value, err := ask(m, parts[0], parts[1], path.Join("/", parts[2]), r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	failOn(json.NewEncoder(w).Encode(value))
}

func ask(m manager.Manager, version, kind, name string, r *http.Request) (any, error) {
	query := v1.DefaultContainerInfoRequest()
	options := v2.RequestOptions{IdType: v2.TypeName, Count: 64, Recursive: r.URL.Query().Get("recursive") == "true"}
	if idType := r.URL.Query().Get("type"); idType != "" {
		options.IdType = idType
	}
	if count, err := strconv.Atoi(r.URL.Query().Get("count")); err == nil {
		options.Count = count
		query.NumStats = count
	}
	switch kind {
	case "machine":
		return m.GetMachineInfo()
	case "containers":
		return m.GetContainerInfo(name, &query)
	case "subcontainers":
		return m.SubcontainersInfo(name, &query)
	case "events":
		return m.GetPastEvents(events.NewRequest())
	case "version":
		found, err := m.GetVersionInfo()
		return found.CadvisorVersion, err
	case "attributes":
		machine, err := m.GetMachineInfo()
		if err != nil {
			return nil, err
		}
		found, err := m.GetVersionInfo()
		return v2.GetAttributes(machine, found), err
	case "summary":
		return m.GetDerivedStats(name, options)
	case "spec":
		return m.GetContainerSpec(name, options)
	case "storage":
		return m.GetFsInfo(r.URL.Query().Get("label"))
	case "ps":
		return m.GetProcessList(name, options)
	case "machinestats":
		found, err := m.GetRequestedContainersInfo("/", options)
		return v2.MachineStatsFromV1(found["/"]), err
	case "stats":
		found, err := m.GetRequestedContainersInfo(name, options)
		if err != nil && len(found) == 0 {
			return nil, err
		}
		return statsOf(version, found), nil
	}
	return nil, fmt.Errorf("unknown request type %q", kind)
}

func statsOf(version string, found map[string]*v1.ContainerInfo) any {
	shown := map[string]any{}
	for name, of := range found {
		if version == "v2.0" {
			shown[name] = v2.DeprecatedStatsFromV1(of)
		} else if name != "/" {
			shown[name] = v2.ContainerInfo{
				Spec:  v2.ContainerSpecFromV1(&of.Spec, of.Aliases, of.Namespace),
				Stats: v2.ContainerStatsFromV1(name, &of.Spec, of.Stats),
			}
		}
	}
	return shown
}

// Asks with the clients of the module; writes what they understood as JSON by the name of the call.
func check(target string) {
	old, err := client1.NewClient(target)
	failOn(err)
	recent, err := client2.NewClient(target)
	failOn(err)
	query := v1.DefaultContainerInfoRequest()
	options := v2.RequestOptions{IdType: v2.TypeName, Count: 1, Recursive: true}
	results := map[string]any{}
	note := func(name string, value any, err error) {
		failOn(err)
		results[name] = value
	}
	machine, err := old.MachineInfo()
	note("v1 machine", machine, err)
	root, err := old.ContainerInfo("/", &query)
	note("v1 container", root, err)
	below, err := old.SubcontainersInfo("/", &query)
	note("v1 subcontainers", below, err)
	past, err := old.EventStaticInfo("?creation_events=true")
	note("v1 events", past, err)
	again, err := recent.MachineInfo()
	note("v2 machine", again, err)
	stats, err := recent.MachineStats()
	note("v2 machine stats", stats, err)
	version, err := recent.VersionInfo()
	note("v2 version", version, err)
	attributes, err := recent.Attributes()
	note("v2 attributes", attributes, err)
	containers, err := recent.Stats("", &options)
	note("v2 stats", containers, err)
	failOn(json.NewEncoder(os.Stdout).Encode(results))
}
