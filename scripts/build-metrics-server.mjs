// Builds the metrics-server for the test of `kubectl top`; see go-binaries.mjs.
import { provide } from "./go-binaries.mjs";

const version = "0.9.0";

process.exitCode = await provide({
  name: "metrics-server",
  version,
  binaries: ["metrics-server"],
  given: "METRICS_SERVER_BIN_DIR",
  takes: "about three minutes",
  packages: [`sigs.k8s.io/metrics-server/cmd/metrics-server@v${version}`],
  args: ["-ldflags", "-s -w"],
  env: { CGO_ENABLED: "0", GOWORK: "off", GOFLAGS: "-buildvcs=false" },
});
