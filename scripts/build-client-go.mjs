// Builds a program of Kubernetes' client library for the test of the local API; see go-binaries.mjs. Its name has a hash
// of the source, so that a changed one is built anew.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { provideFromModule } from "./go-binaries.mjs";

const main = readFileSync(join(import.meta.dirname, "../test/support/client-go/main.go"), "utf8");
const hash = createHash("sha256").update(main).digest("hex").slice(0, 8);

process.exitCode = await provideFromModule({
  ...{ name: `client-go-${hash}`, version: "0.36.3", given: "CLIENT_GO_BIN_DIR", takes: "about two minutes" },
  module: "k8s.io/client-go",
  go: "1.26.0",
  main,
});
