// Builds the mock driver of Kubernetes' own tests of CSI with a small main, for the tests here; see go-binaries.mjs.
// It serves and registers itself, and writes each call as a line of JSON.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { provide } from "./go-binaries.mjs";
import { kubernetesGoMod } from "./kubernetes-module.mjs";

const version = "1.36.3";
const published = version.replace(/^1\./, "0.");
const tests = "k8s.io/kubernetes/test/e2e/storage/drivers/csi-test";

const main = `package main

import (
\t"context"
\t"encoding/json"
\t"flag"
\t"net"
\t"os"
\t"reflect"
\t"sync"
\t"time"

\t"github.com/container-storage-interface/spec/lib/go/csi"
\t"google.golang.org/grpc"
\t"google.golang.org/grpc/status"
\tregistration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
\t"${tests}/driver"
\t"${tests}/mock/service"
)

type registrar struct {
\tregistration.UnimplementedRegistrationServer
\tname, endpoint string
}

func (r registrar) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
\treturn &registration.PluginInfo{Type: "CSIPlugin", Name: r.name, Endpoint: r.endpoint, SupportedVersions: []string{"1.0.0"}}, nil
}

func (registrar) NotifyRegistrationStatus(context.Context, *registration.RegistrationStatus) (*registration.RegistrationStatusResponse, error) {
\treturn &registration.RegistrationStatusResponse{}, nil
}

func must(err error) {
\tif err != nil {
\t\tpanic(err)
\t}
}

func listen(path string) net.Listener {
\tos.Remove(path)
\tlistener, err := net.Listen("unix", path)
\tmust(err)
\treturn listener
}

// One call as it is written: when it ended, how long it took, and how many of its kind were in flight for its volume.
type line struct {
\tMethod   string \`json:"method"\`
\tVolume   string \`json:"volume"\`
\tCode     string \`json:"code"\`
\tMicros   int64  \`json:"micros"\`
\tInFlight int    \`json:"inFlight"\`
\tRequest  any    \`json:"request"\`
}

type journal struct {
\tsync.Mutex
\tinFlight map[string]int
\tout      *json.Encoder
}

func (j *journal) begin(key string) int {
\tj.Lock()
\tdefer j.Unlock()
\tj.inFlight[key]++
\treturn j.inFlight[key]
}

func (j *journal) end(key string, written line) {
\tj.Lock()
\tdefer j.Unlock()
\tj.inFlight[key]--
\tmust(j.out.Encode(written))
}

func volumeOf(request any) string {
\tfield := reflect.Indirect(reflect.ValueOf(request)).FieldByName("VolumeId")
\tif !field.IsValid() {
\t\treturn ""
\t}
\treturn field.String()
}

func main() {
\tendpoint := flag.String("endpoint", "", "socket of the driver")
\tregister := flag.String("registration", "", "socket of its registration")
\tname := flag.String("name", "mock.example.com", "name of the driver")
\tvolumes := flag.Int("volumes", 0, "volumes beside 1, 2 and 3")
\texpand := flag.Bool("expand", false, "grows volumes on nodes")
\tcondition := flag.Bool("condition", false, "reports the health of volumes")
\tgroup := flag.Bool("group", false, "mounts with a group")
\tlimit := flag.Int64("limit", 0, "volumes that the node can attach")
\tflag.Parse()
\tmock := service.New(service.Config{
\t\tDisableAttach: true, DriverName: *name, AttachLimit: *limit, NodeExpansionRequired: *expand,
\t\tNodeVolumeConditionRequired: *condition, VolumeMountGroupRequired: *group, PermissiveTargetPath: true,
\t})
\tcapability := &csi.VolumeCapability{
\t\tAccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
\t\tAccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
\t}
\tfor n := 0; n < *volumes; n++ {
\t\t_, err := mock.CreateVolume(context.Background(), &csi.CreateVolumeRequest{
\t\t\tName: "made-" + time.Now().String(), VolumeCapabilities: []*csi.VolumeCapability{capability},
\t\t})
\t\tmust(err)
\t}
\tcalls := &journal{inFlight: map[string]int{}, out: json.NewEncoder(os.Stdout)}
\tintercept := func(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
\t\tvolume := volumeOf(request)
\t\tkey := info.FullMethod + " " + volume
\t\tcount := calls.begin(key)
\t\tbegan := time.Now()
\t\tanswer, err := handler(ctx, request)
\t\tcalls.end(key, line{info.FullMethod, volume, status.Code(err).String(), time.Since(began).Microseconds(), count, request})
\t\treturn answer, err
\t}
\tserved := driver.NewCSIDriver(&driver.CSIDriverServers{Controller: mock, Identity: mock, Node: mock})
\tmust(served.Start(listen(*endpoint), intercept))
\tif *register != "" {
\t\tserver := grpc.NewServer()
\t\tregistration.RegisterRegistrationServer(server, registrar{name: *name, endpoint: *endpoint})
\t\tgo server.Serve(listen(*register))
\t}
\tselect {}
}
`;

/** The go.mod of Kubernetes, which names the modules that it is made of. */
function upstream() {
  const work = mkdtempSync(join(tmpdir(), "csi-mock-"));
  try {
    writeFileSync(join(work, "go.mod"), "module kubelet-ts.invalid/fetch\n");
    const args = ["mod", "download", "-json", `k8s.io/kubernetes@v${version}`];
    const env = { ...process.env, GOWORK: "off", GOFLAGS: "-mod=mod" };
    const { status, stdout, stderr } = spawnSync("go", args, { cwd: work, env, encoding: "utf8" });
    if (status !== 0) throw new Error(`go mod download: ${stderr}`);
    return readFileSync(JSON.parse(stdout).GoMod, "utf8");
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

process.exitCode = await provide({
  name: "csi-mock",
  version,
  binaries: ["csi-mock"],
  given: "CSI_MOCK_BIN_DIR",
  takes: "about two minutes",
  get source() {
    const more = [`k8s.io/kubelet v${published}`];
    const mod = { name: "csi-mock", version: `v${version}`, upstream: upstream(), more };
    return { "go.mod": kubernetesGoMod(mod), "main.go": main };
  },
  packages: ["."],
  args: ["-ldflags", "-s -w"],
  env: { CGO_ENABLED: "0", GOWORK: "off", GOFLAGS: "-mod=mod -buildvcs=false" },
});
