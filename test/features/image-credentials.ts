/** Private images on a real registry: credential provider plugins, the records of pulls, and no secret anywhere. */
import assert from "node:assert/strict";
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { encodeIntent, recordFileName } from "../../src/images/verification/record-format.ts";
import type { Pod } from "../../src/model/generated/types.ts";
import { http } from "../integration/support/http.ts";
import { FOREVER, manifest, shell } from "../integration/support/manifests.ts";
import { KUBELET, Program } from "../integration/support/program.ts";
import { requireMachine, Site } from "../integration/support/site.ts";
import { until } from "../integration/support/until.ts";
import { removeLogLinks, removeMounts } from "../support/cluster-site.ts";
import { TEST_IMAGES, TestContainerd } from "../support/containerd.ts";
import { freePort } from "../support/free-port.ts";
import { REGISTRY_USER, TestRegistry, whyNoRegistry } from "../support/registry.ts";

requireMachine();

const VERSION = "credentialprovider.kubelet.k8s.io/v1";
const ENV_SECRET = "env-s3cret-of-plugin";

describe("images behind a password", { skip: whyNoRegistry() ?? false }, () => {
  const site = new Site();
  const root = join(site.state, "kubelet");
  const bin = join(site.dir, "bin");
  const config = join(site.dir, "providers.json");
  const runs = join(site.dir, "runs");
  let containerd: TestContainerd;
  let registry: TestRegistry;
  let agent: Program;
  let readOnlyPort: number;

  before(async () => {
    mkdirSync(site.state);
    mkdirSync(bin);
    containerd = await TestContainerd.start();
    registry = await TestRegistry.start(join(site.dir, "registry"));
    writePlugins();
    agent = await start();
    await site.answers(agent);
  });
  after(async () => {
    await agent?.end("SIGKILL");
    await registry?.stop();
    await containerd?.stop();
    await removeMounts(site.dir);
    await removeLogLinks(site.dir);
    // Not a state directory of `kubelet up`, which `kubelet down` could remove.
    rmSync(site.dir, { recursive: true, force: true });
  });

  /** One that answers, and three that must not keep it from doing so. */
  const writePlugins = (): void => {
    const auth = { [registry.host]: REGISTRY_USER };
    const answer = JSON.stringify({
      kind: "CredentialProviderResponse",
      apiVersion: VERSION,
      cacheKeyType: "Registry",
      auth,
    });
    const scripts = {
      "exits-1": `cat >&2; echo "$SECRET ${REGISTRY_USER.password}" >&2; echo '${answer}'; exit 1`,
      floods: `yes "${REGISTRY_USER.password}"`,
      forks: "sleep 3600 & echo no JSON",
      works: `read -r request; echo "$request" >> ${runs}; echo '${answer}'`,
    };
    for (const [name, script] of Object.entries(scripts)) {
      writeFileSync(join(bin, name), `#!/bin/sh\n${script}\n`);
      chmodSync(join(bin, name), 0o755);
    }
    const providers = Object.keys(scripts).map((name) => ({
      name,
      apiVersion: VERSION,
      matchImages: ["*.example.com", `127.*.0.1:${registry.host.split(":")[1]}`],
      defaultCacheDuration: "1h",
      env: [{ name: "SECRET", value: ENV_SECRET }],
    }));
    writeFileSync(
      config,
      JSON.stringify({ apiVersion: "kubelet.config.k8s.io/v1", kind: "CredentialProviderConfig", providers }),
    );
  };

  const start = async (): Promise<Program> => {
    readOnlyPort = await freePort();
    return new Program([
      ...[KUBELET, `--root-dir=${root}`, `--cert-dir=${site.state}/pki`, `--pod-logs-dir=${site.state}/log/pods`],
      ...[`--port=${await freePort()}`, `--healthz-port=${await freePort()}`, `--read-only-port=${readOnlyPort}`],
      ...[`--local-api-socket=${site.state}/kubelet.sock`, `--cgroup-root=${containerd.cgroupParent}`],
      ...[`--container-runtime-endpoint=${containerd.endpoint}`, "--hostname-override=here", "--v=10"],
      ...[`--pod-manifest-path=${site.pods}`, "--fail-swap-on=false", "--resolv-conf="],
      ...[`--image-credential-provider-config=${config}`, `--image-credential-provider-bin-dir=${bin}`],
    ]);
  };
  const podOf = (name: string, image: string, imagePullPolicy: string): Pod =>
    manifest(name, { containers: [shell("main", FOREVER, { image, imagePullPolicy })] });
  const record = (ref: string): string => join(root, "image_manager/pulled", recordFileName(ref));
  const records = (): readonly string[] =>
    readdirSync(join(root, "image_manager/pulled")).map((name) =>
      readFileSync(join(root, "image_manager/pulled", name), "utf8"),
    );
  const metrics = async (): Promise<string> => (await http(`http://127.0.0.1:${readOnlyPort}/metrics`)).body;

  it("are pulled with the credentials of a plugin, whatever the others do; the pull is recorded", async () => {
    const image = await registry.push(containerd, TEST_IMAGES.busybox, "private/one");
    site.write(podOf("one", image, "IfNotPresent"));
    await site.running("one");
    const [text = "", ...more] = records();
    assert.deepEqual(more, []);
    const { imageRef, credentialMapping } = JSON.parse(text) as { imageRef: string; credentialMapping: object };
    assert.deepEqual(credentialMapping, { [`${registry.host}/private/one`]: { nodePodsAccessible: true } });
    assert.ok(existsSync(record(imageRef)));
    assert.deepEqual(readdirSync(join(root, "image_manager/pulling")), []);
    assert.deepEqual(JSON.parse(readFileSync(runs, "utf8")), {
      kind: "CredentialProviderRequest",
      apiVersion: VERSION,
      image: `${registry.host}/private/one`,
    });
  });

  it("a second image of the registry is pulled with the cached credentials", async () => {
    const image = await registry.push(containerd, TEST_IMAGES.busybox, "private/two");
    site.write(podOf("two", image, "Always"));
    await site.running("two");
    assert.equal(readFileSync(runs, "utf8").trim().split("\n").length, 1);
    const text = await metrics();
    assert.match(text, /kubelet_credential_provider_plugin_errors_total\{plugin_name="exits-1"\} 2/);
    assert.match(text, /kubelet_credential_provider_plugin_duration_count\{plugin_name="works"\} 1/);
    assert.match(text, /kubelet_credential_provider_config_info\{hash="sha256:[0-9a-f]{64}"\} 1/);
    assert.match(text, /kubelet_imagemanager_ondisk_pulledrecords 1/);
    assert.match(text, /kubelet_imagemanager_ondisk_pullintents 0/);
  });

  it("an image whose pull was not recorded is verified: the agent was killed in between", async () => {
    const image = await registry.push(containerd, TEST_IMAGES.pause, "private/three");
    const user = `${REGISTRY_USER.username}:${REGISTRY_USER.password}`;
    await agent.end("SIGKILL");
    await containerd.ctr("images", "pull", "--plain-http", "--user", user, image);
    writeFileSync(join(root, "image_manager/pulling", recordFileName(image)), encodeIntent(image));
    // Left behind by a write that was interrupted.
    writeFileSync(join(root, "image_manager/pulled", ".sha256-0.1.1.tmp"), "{");
    site.write(podOf("three", image, "Never"));
    agent = await start();
    await site.answers(agent);
    await site.event("ErrImageNeverPull", "three", /is not present with pull policy of Never/);
    await until("the intent is a record", () => readdirSync(join(root, "image_manager/pulling")).length === 0);
    assert.equal(records().length, 2);
    await until("its check is counted", async () =>
      /mustpull_checks_total\{result="mustAuthenticate"\} [1-9]/.test(await metrics()),
    );
    site.remove("three");
  });

  it("no secret is in the log, an event, an explanation, a metric or a record", async () => {
    assert.match(agent.stderr, /Loaded image credential providers/);
    site.write(podOf("four", `${registry.host}/private/missing:1`, "Always"));
    await site.event("Failed", "four", /private\/missing/);
    await until("the log names the failed plugins", () =>
      ["exits-1", "floods", "forks"].every((name) => agent.stderr.includes(`credential provider plugin ${name}`)),
    );
    const seen = [
      agent.stderr,
      agent.stdout,
      JSON.stringify(await site.events()),
      JSON.stringify(await site.find("four")),
      JSON.stringify(await site.find("one")),
      await metrics(),
      ...records(),
    ].join("\n");
    const { username, password } = REGISTRY_USER;
    const basic = Buffer.from(`${username}:${password}`).toString("base64");
    for (const secret of [password, ENV_SECRET, basic]) assert.ok(!seen.includes(secret), secret);
  });

  it("a configuration that is not valid ends the agent at its start and names the field", async () => {
    await agent.end("SIGTERM");
    writeFileSync(config, readFileSync(config, "utf8").replaceAll('"1h"', '"often"'));
    const { code, stderr, stdout } = await (await start()).ended;
    assert.equal(code, 1);
    assert.match(`${stdout}${stderr}`, /providers\[0\]\.defaultCacheDuration: "often" is not a duration/);
  });
});
