// `npm run test:cluster [PART-OF-A-NAME …]`: the suites of test/cluster on a real etcd and kube-apiserver.
// Builds the binaries if they are not there (once, minutes); with `--prepare` it does nothing else. What cannot run here is
// said; with KUBELET_STRICT=1 that is a failure.
import "./require-node.mjs";
import { join } from "node:path";
import { installPackages } from "./packages.mjs";
import { CommandError, green, red, run, say, seconds, yellow } from "./progress.mjs";
import { build, installNodeModules, root } from "./setup.mjs";

const wanted = process.argv.slice(2);
const began = performance.now();
/** The build script's word for: there is no Go here. */
const NO_GO = 3;
/** That there is nothing to build from. */
const NO_SOURCES = 77;

/** What the suites of kubeadm and of the exchange need beside the control plane. */
const ON_REQUEST = ["kubelet", "kubeadm", "kube-proxy"];

/** Programs of other projects: for the cluster of kubeadm, `kubectl top`, traces, CSI, applications, to compare with. */
const OTHERS = [
  ["etcd", "build-etcd.mjs", "ETCD_BIN_DIR"],
  ["CoreDNS", "build-coredns.mjs", "COREDNS_BIN_DIR"],
  ["metrics-server", "build-metrics-server.mjs", "METRICS_SERVER_BIN_DIR"],
  ["cAdvisor", "build-cadvisor.mjs", "CADVISOR_BIN_DIR"],
  ["receiver of traces", "build-otlp-receiver.mjs", "OTLP_RECEIVER_BIN_DIR"],
  ["program of client-go", "build-client-go.mjs", "CLIENT_GO_BIN_DIR"],
  ["mock CSI driver", "build-csi-mock.mjs", "CSI_MOCK_BIN_DIR"],
  ["images of the example applications", "build-app-images.mjs", "APP_IMAGES_DIR"],
  // Claims need a runtime with CDI.
  ["containerd 2", "build-containerd.mjs", "CONTAINERD2_BIN_DIR"],
];

/** The folder that a build script names, or undefined when there is nothing to build with. */
async function built(title, script, args = []) {
  const command = [process.execPath, join(root, "scripts", script), ...args];
  const { code, stdout } = await run(title, command, { cwd: root, accept: [NO_GO, NO_SOURCES] });
  return code === 0 ? stdout.trimEnd().split("\n").at(-1) : undefined;
}

/** The folders with the binaries as variables of the suites, or undefined when there is nothing to build them with. */
async function binaries() {
  // Given binaries may be fewer: the suites that need more say so.
  const more = process.env.KUBE_BIN_DIR ? [] : ON_REQUEST;
  const kubernetes = await built("Kubernetes binaries", "build-kubernetes.mjs", more);
  if (kubernetes === undefined) return undefined;
  const folders = { KUBE_BIN_DIR: kubernetes };
  for (const [title, script, variable] of OTHERS) folders[variable] = (await built(title, script)) ?? "";
  return folders;
}

try {
  const missing = await installPackages({ forTests: true });
  if (missing.length > 0) say(yellow(`not installed: ${missing.join(", ")}`));
  await installNodeModules();
  // The suites of the agent run what users run.
  await build();
  const folders = await binaries();
  if (folders === undefined) {
    say(yellow("left out: cluster tests: no Go on this machine to build Kubernetes with"));
    // A gap is a failure where the tests are the judge of a change.
    if (process.env.KUBELET_STRICT === "1") process.exitCode = 1;
  } else if (wanted[0] !== "--prepare") {
    const command = [process.execPath, "--import", "tsx", "test/integration/run.ts", "--cluster", ...wanted];
    const env = { ...process.env, ...folders, TSX_DISABLE_CACHE: "1" };
    await run("cluster tests", command, { cwd: root, env, through: true });
    say(green(`✓ cluster tests passed in ${seconds(performance.now() - began)}`));
  }
} catch (error) {
  say(red(error instanceof CommandError ? error.message : String(error.stack ?? error)));
  process.exitCode = 1;
}
