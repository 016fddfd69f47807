// Builds cAdvisor's monitoring of its own module, for the comparison with it; see go-binaries.mjs.
// The version is the one that the kubelet of Kubernetes 1.36.3 is built with.
import { readFileSync } from "node:fs";
import { provideFromModule } from "./go-binaries.mjs";

process.exitCode = await provideFromModule({
  ...{ name: "cadvisor", version: "0.56.2", given: "CADVISOR_BIN_DIR", takes: "about two minutes" },
  module: "github.com/google/cadvisor",
  go: "1.24.0",
  main: readFileSync(new URL("cadvisor/main.go", import.meta.url), "utf8"),
});
