// Builds the etcd that this version of kubeadm asks for, for the tests of kubeadm; see go-binaries.mjs.
import { provideFromModule } from "./go-binaries.mjs";

const module = "go.etcd.io/etcd/server/v3";

process.exitCode = await provideFromModule({
  ...{ name: "etcd", version: "3.6.8", given: "ETCD_BIN_DIR", takes: "about two minutes" },
  // Its go.mod replaces its sibling modules by folders that are not part of it, so it cannot be installed by version.
  module,
  go: "1.24",
  main: `package main

import (
\t"os"

\t"${module}/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
`,
});
