// Builds a runc that has user namespaces (1.2 and later), for the tests of those; see go-binaries.mjs.
// It begins in C and needs the headers of libseccomp: without seccomp it refuses every sandbox.
import { provide, succeeds } from "./go-binaries.mjs";

const version = "1.3.6";

process.exitCode = await provide({
  name: "runc",
  version,
  binaries: ["runc"],
  given: "RUNC_BIN_DIR",
  takes: "about a minute",
  packages: [`github.com/opencontainers/runc@v${version}`],
  args: ["-tags", "seccomp", "-ldflags", `-s -w -X main.version=${version}`],
  env: { CGO_ENABLED: "1" },
  missing: !succeeds("cc", "--version")
    ? "C compiler"
    : !succeeds("pkg-config", "--exists", "libseccomp")
      ? "libseccomp-dev"
      : undefined,
});
