// Builds csi-sanity, the conformance test of CSI drivers, for the driver that the tests mount with; see go-binaries.mjs.
import { provide } from "./go-binaries.mjs";

const version = "5.6.0";

process.exitCode = await provide({
  name: "csi-sanity",
  version,
  binaries: ["csi-sanity"],
  given: "CSI_SANITY_BIN_DIR",
  takes: "about two minutes",
  packages: [`github.com/kubernetes-csi/csi-test/v5/cmd/csi-sanity@v${version}`],
  args: ["-ldflags", "-s -w"],
  env: { CGO_ENABLED: "0", GOWORK: "off", GOFLAGS: "-buildvcs=false" },
});
