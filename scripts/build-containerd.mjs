// Builds containerd 2 for the contract tests; see go-binaries.mjs.
import { provide } from "./go-binaries.mjs";

const version = "2.4.2";
const module = "github.com/containerd/containerd/v2";
const binaries = ["containerd", "containerd-shim-runc-v2", "ctr"];

process.exitCode = await provide({
  name: "containerd",
  version,
  binaries,
  given: "CONTAINERD2_BIN_DIR",
  takes: "about three minutes",
  packages: binaries.map((name) => `${module}/cmd/${name}@v${version}`),
  args: ["-tags", "no_btrfs,no_devmapper,no_zfs", "-ldflags", `-s -w -X ${module}/version.Version=v${version}`],
  env: { CGO_ENABLED: "0" },
});
