/** The ways into the local API of `kubelet up`: its kubeconfig merged into the user's, and manifests by curl. */
import assert from "node:assert/strict";
import { mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { FOREVER, manifest } from "../integration/support/manifests.ts";
import { type Ended, KUBELET, Program } from "../integration/support/program.ts";
import { type Agent, NODE, requireMachine, Site } from "../integration/support/site.ts";
import { until } from "../integration/support/until.ts";
import { kubeBinDir } from "../support/control-plane.ts";
import { skipWithoutKubectl } from "../support/local-kubectl.ts";

requireMachine();
skipWithoutKubectl();

describe("ways into the local API", () => {
  const site = new Site();
  const home = join(site.dir, "home");
  const config = join(home, ".kube/config");
  const env = { ...process.env, HOME: home };
  let agent: Agent;

  before(async () => {
    mkdirSync(home);
    agent = await site.up();
  });
  after(() => site.close());

  const run = (...command: readonly string[]): Promise<Ended> => new Program(command, { env }).ended;

  /** kubectl as a user starts it: it finds its configuration by itself. */
  async function kubectl(...args: readonly string[]): Promise<string> {
    const { code, stdout, stderr } = await run("env", "-u", "KUBECONFIG", join(kubeBinDir(), "kubectl"), ...args);
    assert.equal(code, 0, `kubectl ${args.join(" ")}: ${stderr}`);
    return stdout;
  }

  async function merge(): Promise<void> {
    const { code, stdout, stderr } = await run(KUBELET, "kubeconfig", "--merge", "--state-dir", site.state);
    assert.equal(code, 0, stderr);
    assert.equal(stdout, `Merged into ${config}; kubectl talks to the local API now.\n`);
  }

  const nodesAre = (): Promise<unknown> =>
    until("the node is shown", async () => (await kubectl("get", "nodes", "-o", "name")) === `node/${NODE}\n`);

  test("kubeconfig prints the file of the agent", async () => {
    const { code, stdout } = await run(KUBELET, "kubeconfig", "--state-dir", site.state);
    assert.equal(code, 0);
    assert.equal(stdout, readFileSync(join(site.state, "kubeconfig"), "utf8"));
  });

  test("kubeconfig --merge: kubectl needs nothing more", async () => {
    await merge();
    assert.equal(statSync(config).mode & 0o777, 0o600);
    await nodesAre();
  });

  test("kubeconfig --merge keeps the other clusters of the user, and may be repeated", async () => {
    const cluster = ["--server=https://192.0.2.1:6443", "--insecure-skip-tls-verify=true"];
    await kubectl("config", "set-cluster", "work", ...cluster);
    await kubectl("config", "set-credentials", "me", "--token=secret");
    await kubectl("config", "set-context", "work", "--cluster=work", "--user=me");
    const own = (await kubectl("config", "current-context")).trim();
    await kubectl("config", "use-context", "work");
    await merge();
    await merge();
    assert.equal((await kubectl("config", "current-context")).trim(), own);
    const contexts = (await kubectl("config", "get-contexts", "-o", "name")).trim().split("\n");
    assert.deepEqual(contexts.sort(), [own, "work"].sort());
    const user = ["config", "view", "--raw", "-o", 'jsonpath={.users[?(@.name=="me")].user.token}'];
    assert.equal(await kubectl(...user), "secret");
    await nodesAre();
  });

  test("kubeconfig --merge leaves a file alone that is no kubeconfig", async () => {
    const kept = readFileSync(config, "utf8");
    writeFileSync(config, "- a list\n");
    const { code, stderr } = await run(KUBELET, "kubeconfig", "--merge", "--state-dir", site.state);
    assert.equal(code, 1);
    assert.match(stderr, /is not a kubeconfig; move it away or merge by hand/);
    assert.equal(readFileSync(config, "utf8"), "- a list\n");
    writeFileSync(config, kept);
  });

  /** The text of an answer and its status on a last line. */
  async function curl(path: string, ...args: readonly string[]): Promise<string> {
    const socket = ["--unix-socket", join(site.state, "apiserver.sock")];
    const words = ["curl", "-sS", "-w", "%{http_code}\n", ...socket, ...args, `http://localhost${path}`];
    const { code, stdout, stderr } = await run(...words);
    assert.equal(code, 0, stderr);
    return stdout;
  }

  function write(name: string, ...documents: readonly string[]): string {
    const path = join(site.dir, name);
    writeFileSync(path, documents.join("---\n"));
    return path;
  }

  const pod = (name: string): string => `${JSON.stringify(manifest(name))}\n`;

  test("curl posts a manifest of several documents: the right ones run, the wrong one is named by line and field", async () => {
    const wrong = `apiVersion: v1
kind: Pod
metadata: {name: wrong}
spec:
  restartPolicy: Sometimes
  containers: [{name: Main, image: x, command: ["${FOREVER.length}"]}]
`;
    const many = write("many.yaml", pod("one"), wrong, pod("two"));
    const answer = (await curl("/manifests", "--data-binary", `@${many}`)).split("\n");
    assert.equal(answer[0], "pod/one created");
    assert.equal(answer[1], "pod/wrong refused (line 3)");
    assert.match(answer.slice(2, -3).join("\n"), /^ {2}spec\.containers\[0\]\.name: Invalid value: "Main"/m);
    assert.match(answer.slice(2, -3).join("\n"), /^ {2}spec\.restartPolicy: Unsupported value: "Sometimes"/m);
    assert.deepEqual(answer.slice(-3), ["pod/two created", "422", ""]);
    await site.running("one");
    await site.running("two");
    assert.equal(await kubectl("get", "pods", "-o", "name"), "pod/one\npod/two\n");
  });

  test("curl lists what there is", async () => {
    const isListed = async (): Promise<boolean> =>
      (await curl("/manifests")) === "default/one Running 1/1\ndefault/two Running 1/1\n200\n";
    await until("both are listed", isListed);
    const json = await curl("/manifests", "-H", "Accept: application/json");
    const { kind, items } = JSON.parse(json.replace(/200\n$/, "")) as { kind: string; items: unknown[] };
    assert.deepEqual([kind, items.length], ["PodList", 2]);
  });

  test("curl posts the same again: nothing changes; a PodList is taken too", async () => {
    const list = { apiVersion: "v1", kind: "PodList", items: [manifest("one"), manifest("three")] };
    const file = write("list.json", JSON.stringify(list));
    assert.equal(await curl("/manifests", "--data-binary", `@${file}`), "pod/one unchanged\npod/three created\n200\n");
    await site.running("three");
  });

  test("curl deletes by a path and by a manifest, and the pods end", async () => {
    assert.equal(await curl("/manifests/default/one", "-X", "DELETE"), "pod/one deleted\n200\n");
    const rest = write("rest.yaml", pod("two"), pod("three"));
    const words = ["-X", "DELETE", "--data-binary", `@${rest}`];
    assert.equal(await curl("/manifests", ...words), "pod/two deleted\npod/three deleted\n200\n");
    for (const name of ["one", "two", "three"]) await site.gone(name);
    await until("nothing is listed", async () => (await curl("/manifests")) === "200\n");
    assert.match(await curl("/manifests/default/one", "-X", "DELETE"), /pods \\"one\\" not found.*\n404\n$/);
  });

  test("the port takes manifests of those who have the certificate only", async () => {
    const url = `https://127.0.0.1:${agent.apiPort}/manifests`;
    const { stdout } = await run("curl", "-sSk", "-o", "/dev/null", "-w", "%{http_code}", url);
    assert.equal(stdout, "401");
    const listed = JSON.parse(await kubectl("get", "--raw", "/manifests")) as { kind: string; items: unknown[] };
    assert.deepEqual([listed.kind, listed.items], ["PodList", []]);
  });
});
