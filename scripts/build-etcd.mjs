// Builds the etcd that this version of kubeadm asks for, for the tests of kubeadm; see go-binaries.mjs.
import { provide } from "./go-binaries.mjs";

const version = "3.6.8";
const module = "go.etcd.io/etcd/server/v3";

process.exitCode = await provide({
  ...{ name: "etcd", version, binaries: ["etcd"], given: "ETCD_BIN_DIR", takes: "about two minutes" },
  // Its go.mod replaces its sibling modules by folders that are not part of it, so it cannot be installed by version.
  source: {
    "go.mod": `module kubelet-ts.invalid/etcd\n\ngo 1.24\n\nrequire ${module} v${version}\n`,
    "main.go": `package main

import (
\t"os"

\t"${module}/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
`,
  },
  packages: ["."],
  args: ["-ldflags", "-s -w"],
  env: { CGO_ENABLED: "0", GOWORK: "off", GOFLAGS: "-mod=mod -buildvcs=false" },
});
