/** The configuration of a plain agent changes while it runs: by its file, by SIGHUP, by commands, and back by itself. */
import assert from "node:assert/strict";
import { mkdirSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer, type IncomingHttpHeaders, type Server } from "node:http";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { forever, manifest, shell } from "../integration/support/manifests.ts";
import { HEAD, PlainAgent } from "../integration/support/plain-agent.ts";
import { type Ended, kubelet } from "../integration/support/program.ts";
import { ids, requireMachine, Site } from "../integration/support/site.ts";
import { said } from "../integration/support/told.ts";
import { SLOWNESS, until } from "../integration/support/until.ts";
import { freePort } from "../support/free-port.ts";

requireMachine();

describe("live configuration", () => {
  const site = new Site();
  const agent = new PlainAgent(site);
  const socket = `${site.state}/kubelet.sock`;
  const command = (...args: string[]): Promise<Ended> => kubelet(["config", ...args, "--local-api-socket", socket]);
  let server: Server;
  let url = "";
  const requests: { headers: IncomingHttpHeaders; at: number }[] = [];
  let keeper: Record<string, string>;

  before(async () => {
    const port = await freePort();
    server = createServer((request, response) => {
      requests.push({ headers: request.headers, at: performance.now() });
      response.end(JSON.stringify(manifest("remote")));
    });
    await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
    url = `http://127.0.0.1:${port}/`;
    // The embedded runtime outlives the agent that started it.
    const first = await site.up();
    await first.end("SIGINT");
    site.write(manifest("keeper"));
    const ports = { healthzPort: 0, readOnlyPort: 0 };
    agent.set({ ...ports, staticPodPath: site.pods, containerRuntimeEndpoint: `unix://${site.layout.socket}` });
    await agent.start();
    keeper = ids(await site.running("keeper"));
  });
  after(async () => {
    server.closeAllConnections();
    server.close();
    await agent.close();
    await site.close();
  });

  const untouched = async (): Promise<void> => {
    assert.equal(agent.program?.isOver, false, "the agent was not started again");
    assert.deepEqual(ids(await site.running("keeper")), keeper, "the pod did not notice");
    assert.equal((await site.find("keeper"))?.restarts ?? 0, 0);
  };
  /** What a new pod with these DNS settings sees. */
  const resolverOf = async (name: string): Promise<string> => {
    site.write(manifest(name, { containers: [shell("main", forever("cat /etc/resolv.conf; echo end"))] }));
    await site.running(name);
    return said(site, name, /^end$/m);
  };

  it("the log level", async () => {
    const words = /Reloaded configuration/;
    await agent.change("registryBurst", 9);
    assert.doesNotMatch(agent.program?.stderr ?? "", words);
    agent.set({ logging: { verbosity: 5 } });
    await agent.inForce("logging.verbosity", 5);
    await agent.change("registryBurst", 8);
    await until("a line of that level", () => words.test(agent.program?.stderr ?? ""));
    await untouched();
  });

  it("a URL of pods appears, its headers and its frequency change, and it goes", async () => {
    await agent.change("staticPodURL", url);
    await site.running("remote");
    agent.set({ staticPodURLHeader: { "X-Key": ["one"] } });
    await until("a request with the header", () => requests.some(({ headers }) => headers["x-key"] === "one"));
    const slow = requests.length;
    await agent.change("httpCheckFrequency", "100ms");
    await until("ten requests more", () => requests.length > slow + 10);
    await agent.change("httpCheckFrequency", "1h0m0s");
    await agent.change("staticPodURL", "");
    await site.gone("remote");
    await untouched();
  });

  it("the DNS settings of new pods", async () => {
    await agent.change("clusterDNS", ["10.99.0.10"]);
    await agent.change("clusterDomain", "live.example");
    const first = await resolverOf("dns-a");
    assert.match(first, /nameserver 10\.99\.0\.10/);
    assert.match(first, /search .*live\.example/);
    const own = join(agent.dir, "resolv.conf");
    writeFileSync(own, "nameserver 192.0.2.7\n");
    await agent.change("clusterDNS", []);
    await agent.change("resolvConf", own);
    assert.match(await resolverOf("dns-b"), /nameserver 192\.0\.2\.7/);
    await untouched();
  });

  it("intervals, rates and limits", async () => {
    const changes = [
      ["fileCheckFrequency", "7s"],
      ["registryPullQPS", 3],
      ["registryBurst", 4],
      ["serializeImagePulls", false],
      ["maxParallelImagePulls", 3],
      ["runtimeRequestTimeout", "45s"],
    ] as const;
    for (const [field, value] of changes) await agent.change(field, value);
    await untouched();
  });

  it("maxPods waits for a word of the administrator", async () => {
    agent.set({ maxPods: 1 });
    await until("it waits", async () => (await agent.setting("maxPods")).waits?.for === "reload");
    assert.equal((await agent.setting("maxPods")).value, 110);
    const { stdout } = await command("view", "--running");
    assert.match(stdout, /maxPods +110 .* 1 waits for a reload/);
    const { code, stderr } = await command("apply");
    assert.equal(code, 0, stderr);
    await agent.inForce("maxPods", 1);
    agent.set({ maxPods: 100 });
    await until("it waits", async () => (await agent.setting("maxPods")).waits?.for === "reload");
    agent.program?.child.kill("SIGHUP");
    await agent.inForce("maxPods", 100);
    await untouched();
  });

  it("an invalid change leaves everything, and what needs a restart is listed", async () => {
    agent.set({ registryPullQPS: -1, registryBurst: 99 });
    await until("a problem", async () => /registryPullQPS/.test((await agent.report()).problems.join()));
    assert.equal((await agent.setting("registryBurst")).value, 4);
    const invalid = await until("an event", async () =>
      (await site.events()).find(({ reason }) => reason === "ConfigInvalid"),
    );
    assert.match(invalid.message, /registryPullQPS/);
    agent.set({ registryPullQPS: 3, registryBurst: 4, healthzPort: await freePort() });
    await until("it waits", async () => (await agent.setting("healthzPort")).waits?.for === "restart");
    assert.deepEqual((await agent.report()).problems, []);
    await until("an event", async () =>
      (await site.events()).some(({ reason, message }) => /NeedsRestart/.test(reason) && /healthzPort/.test(message)),
    );
    agent.set({ healthzPort: 0 });
    await until("nothing waits", async () => (await agent.setting("healthzPort")).waits === undefined);
    await untouched();
  });

  it("the manifest path, and a file behind swapped links as in a mounted ConfigMap", async () => {
    const other = join(agent.dir, "pods");
    mkdirSync(other);
    writeFileSync(join(other, "moved.json"), JSON.stringify(manifest("moved")));
    await agent.change("staticPodPath", other);
    await site.running("moved");
    await site.gone("keeper");
    await agent.change("staticPodPath", site.pods);
    keeper = ids(await site.running("keeper"));
    await site.gone("moved");
  });

  it("drop-ins are watched too, through swapped links", async () => {
    await agent.program?.end("SIGTERM");
    const drops = join(agent.dir, "d");
    mkdirSync(drops);
    const version = (name: string, registryBurst: number): void => {
      mkdirSync(join(drops, name));
      writeFileSync(join(drops, name, "a.conf"), JSON.stringify({ ...HEAD, registryBurst }));
      symlinkSync(name, join(drops, "..data.new"));
      renameSync(join(drops, "..data.new"), join(drops, "..data"));
    };
    version("..1", 20);
    symlinkSync("..data/a.conf", join(drops, "a.conf"));
    await agent.start([`--config-dir=${drops}`]);
    await agent.inForce("registryBurst", 20);
    const changedAt = performance.now();
    version("..2", 21);
    await agent.inForce("registryBurst", 21);
    // By the watch: without one, files are checked once a minute.
    assert.ok(performance.now() - changedAt < 20_000 * SLOWNESS);
    await untouched();
  });

  describe("dynamic, with a last known good one", () => {
    const store = join(agent.dir, "dynamic");
    const flags = [`--dynamic-config-dir=${store}`, "--config-trial-duration=2s"];
    const write = (name: string, content: object): string => {
      const path = join(agent.dir, name);
      const base = { ...HEAD, staticPodPath: site.pods, containerRuntimeEndpoint: `unix://${site.layout.socket}` };
      writeFileSync(path, JSON.stringify({ ...base, healthzPort: 0, ...content }));
      return path;
    };
    const state = async (): Promise<string | undefined> => (await agent.report()).dynamic?.state;

    it("a file is applied, holds its trial and is good; one that is not valid is refused", async () => {
      await agent.program?.end("SIGTERM");
      await agent.start(flags);
      const { code, stderr, stdout } = await command("apply", write("good.json", { registryBurst: 31 }));
      assert.equal(code, 0, stderr);
      assert.match(stdout, /In force now: .*registryBurst/);
      await agent.inForce("registryBurst", 31);
      await until("it is good", async () => (await state()) === "good");
      const refused = await command("apply", write("bad.json", { registryBurst: -1 }));
      assert.equal(refused.code, 1);
      assert.match(refused.stderr, /registryBurst/);
      await agent.inForce("registryBurst", 31);
      await untouched();
    });

    it("one under which the agent is killed again and again is rolled back at the next start", async () => {
      await agent.kill();
      const slow = [`--dynamic-config-dir=${store}`, "--config-trial-duration=1h"];
      await agent.start(slow);
      assert.equal((await command("apply", write("crash.json", { registryBurst: 32 }))).code, 0);
      for (let crash = 0; crash < 2; crash++) {
        await agent.kill();
        await agent.start(slow);
        await agent.inForce("registryBurst", 32);
      }
      await agent.kill();
      await agent.start(slow);
      await agent.inForce("registryBurst", 31);
      assert.match((await agent.report()).dynamic?.error ?? "", /crashed 3 times/);
      assert.match((await command("view", "--running")).stdout, /Dynamic configuration: rolled back/);
      assert.match((await command("history")).stdout, /file\/2\/kubelet .*rolled back .*crash\.json/);
      await untouched();
    });

    it("one under which a port cannot be served is rolled back by itself", async () => {
      const taken = createServer();
      const port = await freePort();
      await new Promise<void>((resolve) => taken.listen(port, "127.0.0.1", resolve));
      try {
        const applied = await command("apply", write("port.json", { healthzPort: port }));
        assert.match(applied.stdout, /With the next start of the agent: healthzPort/);
        await agent.program?.end("SIGTERM");
        const program = await agent.start(flags);
        await until("it ends to be rid of it", () => program.isOver, { limitMs: 90_000 });
        assert.match((await program.ended).stderr, /not healthy under it/);
        await agent.start(flags);
        assert.equal((await agent.report()).dynamic?.state, "rolled back");
        await agent.inForce("registryBurst", 31);
        await untouched();
      } finally {
        taken.close();
      }
    });

    it("rollback leaves it, also while no agent runs", async () => {
      assert.equal((await command("rollback")).code, 0);
      assert.equal(await state(), "good");
      await agent.program?.end("SIGTERM");
      const { code, stderr } = await command("rollback", "--to-local", `--dynamic-config-dir=${store}`);
      assert.equal(code, 0, stderr);
      await agent.start(flags);
      assert.equal(await state(), "local");
      await agent.inForce("registryBurst", 4);
      await untouched();
    });
  });
});
