// Builds the CoreDNS that this version of kubeadm asks for, for the tests of kubeadm; see go-binaries.mjs.
// Only with the plugins of kubeadm's Corefile: the others bring the libraries of every cloud.
import { provide } from "./go-binaries.mjs";

const version = "1.14.2";
const module = "github.com/coredns/coredns";
const plugins = [
  ...["cache", "errors", "forward", "health", "kubernetes", "loadbalance", "loop", "metrics", "ready", "reload"],
];

process.exitCode = await provide({
  ...{ name: "coredns", version, binaries: ["coredns"], given: "COREDNS_BIN_DIR", takes: "about three minutes" },
  source: {
    "go.mod": `module kubelet-ts.invalid/coredns\n\ngo 1.25.0\n\nrequire ${module} v${version}\n`,
    "main.go": `package main

import (
\t"${module}/coremain"
${plugins.map((name) => `\t_ "${module}/plugin/${name}"\n`).join("")})

func main() { coremain.Run() }
`,
  },
  packages: ["."],
  args: ["-ldflags", "-s -w"],
  env: { CGO_ENABLED: "0", GOWORK: "off", GOFLAGS: "-mod=mod -buildvcs=false" },
});
