// Builds the CoreDNS that this version of kubeadm asks for, for the tests of kubeadm; see go-binaries.mjs.
// Only with the plugins of kubeadm's Corefile: the others bring the libraries of every cloud.
import { provideFromModule } from "./go-binaries.mjs";

const module = "github.com/coredns/coredns";
const plugins = [
  ...["cache", "errors", "forward", "health", "kubernetes", "loadbalance", "loop", "metrics", "ready", "reload"],
];

process.exitCode = await provideFromModule({
  ...{ name: "coredns", version: "1.14.2", given: "COREDNS_BIN_DIR", takes: "about three minutes" },
  module,
  go: "1.25.0",
  main: `package main

import (
\t"${module}/coremain"
${plugins.map((name) => `\t_ "${module}/plugin/${name}"\n`).join("")})

func main() { coremain.Run() }
`,
});
