/** kubectl's streams without a cluster: logs, exec, attach, run, port-forward, cp and debug through the local API. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { DEMO_IMAGE } from "../../src/adapters/embedded/index.ts";
import { http } from "../integration/support/http.ts";
import { forever, manifest, shell } from "../integration/support/manifests.ts";
import { type Agent, requireExec, requireMachine, Site } from "../integration/support/site.ts";
import { pause, until } from "../integration/support/until.ts";
import { LocalKubectl, skipWithoutKubectl, WITH_INPUT } from "../support/local-kubectl.ts";

requireMachine();
requireExec();
skipWithoutKubectl();

/** More than any window or buffer on the way. */
const MUCH = 3_000_000;

describe("the streams of kubectl without a cluster", () => {
  let site: Site;
  let agent: Agent;
  let kubectl: LocalKubectl;

  before(async () => {
    site = new Site();
    agent = await site.up();
    kubectl = new LocalKubectl(site);
    const web = forever("mkdir -p /tmp/w; echo page > /tmp/w/index.html; busybox httpd -p 8080 -h /tmp/w; echo serves");
    // kubectl may lose what comes together with the end of a stream, on the original too: it ends when that was read.
    const talk = "read line; echo got $line; sleep 1; echo a problem >&2; read line; echo then $line; read line";
    kubectl.with(manifest("web", { containers: [shell("main", web)] }), "create", "-f", "-");
    kubectl.with(
      manifest("talk", { restartPolicy: "Never", containers: [shell("talk", talk, { stdin: true })] }),
      ...["create", "-f", "-"],
    );
    await kubectl.ok("wait", "--for=condition=Ready", "pod/web", "pod/talk", "--timeout=60s");
  });
  after(async () => {
    await kubectl?.close();
    await site?.close();
  });

  test("logs: the end, from when, with times, and followed to the end of the container", async () => {
    await until("its word", async () => (await kubectl.ok("logs", "web")) === "serves\n");
    assert.match(await kubectl.ok("logs", "web", "--timestamps", "--tail=1"), /^\d{4}-\d\d-\d\dT[\d:.]+Z serves\n$/);
    assert.equal(await kubectl.ok("logs", "web", "--limit-bytes=3"), "ser");
    assert.equal(await kubectl.ok("logs", "web", "--since-time=2100-01-01T00:00:00Z"), "");
    const counts = "i=0; while [ $i -lt 300 ]; do echo $i; i=$((i+1)); done; sleep 1; echo end";
    kubectl.with(
      manifest("counts", { restartPolicy: "Never", containers: [shell("main", counts)] }),
      ...["create", "-f", "-"],
    );
    await kubectl.podIs("counts", "has begun", ({ status }) => status?.phase !== "Pending");
    const followed = await kubectl.ok("logs", "-f", "counts");
    assert.deepEqual(
      followed.trimEnd().split("\n"),
      Array.from({ length: 300 }, (_, index) => `${index}`).concat("end"),
    );
    assert.match(await kubectl.fails("logs", "web", "-c", "nope"), /container nope is not valid for pod web/);
    assert.match(await kubectl.fails("logs", "web", "--previous"), /previous terminated container "main" in pod "web"/);
    assert.match(await kubectl.fails("logs", "nobody"), /pods "nobody" not found/);
  });

  test("exec: exit code, both outputs apart, input with its end", async () => {
    const ran = await kubectl.run("exec", "web", "--", "sh", "-c", "echo out; echo err >&2; exit 7");
    assert.equal(ran.code, 7);
    assert.equal(ran.stdout, "out\n");
    assert.match(ran.stderr, /^err\n/);
    const bytes = randomBytes(MUCH);
    const sum = kubectl.begin(["exec", "-i", "web", "--", "busybox", "sha256sum"], WITH_INPUT);
    sum.child.stdin?.on("error", () => undefined).end(bytes);
    const { stdout, code, stderr } = await sum.ended;
    assert.equal(code, 0, stderr);
    assert.equal(stdout, `${createHash("sha256").update(bytes).digest("hex")}  -\n`);
    const much = await kubectl.ok("exec", "web", "--", "sh", "-c", `head -c ${MUCH} /dev/zero | tr '\\0' x`);
    assert.equal(much.length, MUCH);
    assert.match(await kubectl.fails("exec", "web", "--", "no-such-program"), /no-such-program/);
    assert.match(await kubectl.fails("exec", "web", "-c", "nope", "--", "true"), /container nope is not valid/);
  });

  test("exec -it has a terminal of the client's size that follows it", async () => {
    const inside = kubectl.beginOnTerminal(["exec", "-it", "web", "--", "sh"]);
    const type = (text: string): void => void inside.child.stdin?.write(text);
    await until("the prompt", () => inside.stdout.includes("# "), { seen: () => inside.stdout });
    type("tty\n");
    await inside.says("/dev/pts/");
    // The size comes beside the input.
    await until("its size", () => {
      type("echo si''ze $(busybox stty size)\n");
      return inside.stdout.includes("size 33 77");
    });
    spawnSync("stty", ["-F", readFileSync(kubectl.terminalName, "utf8").trim(), "rows", "44", "cols", "88"]);
    await until("the new size", () => {
      type("echo si''ze $(busybox stty size)\n");
      return inside.stdout.includes("size 44 88");
    });
    type("exit 5\n");
    assert.equal((await inside.ended).code, 5);
  });

  test("attach: what is typed reaches the process, what it says comes back, and the end is the end", async () => {
    const attached = kubectl.begin(["attach", "-i", "talk"], WITH_INPUT);
    attached.child.stdin?.on("error", () => undefined).write("one\n");
    await attached.says("got one\n");
    await until("its errors", () => attached.stderr.includes("a problem"));
    attached.child.stdin?.write("two\n");
    await attached.says("then two\n");
    attached.child.stdin?.write("three\n");
    const { code, stdout, stderr } = await attached.ended;
    assert.equal(code, 0, stderr);
    assert.match(stdout, /got one\nthen two\n$/);
    await kubectl.ok("wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/talk", "--timeout=30s");
  });

  test("run -i --rm is attached until its end, with its exit code", async () => {
    const once = kubectl.begin(
      [
        ...["run", "once", "-i", "--rm", "--quiet", "--restart=Never", "--image-pull-policy=Never"],
        ...[`--image=${DEMO_IMAGE}`, "--command", "--", "sh", "-c", "read x; echo got $x; read x; exit 3"],
      ],
      WITH_INPUT,
    );
    once.child.stdin?.on("error", () => undefined).write("hello\n");
    await once.says("got hello\n");
    once.child.stdin?.end("enough\n");
    const { code, stdout, stderr } = await once.ended;
    assert.equal(stdout, "got hello\n", stderr);
    assert.equal(code, 3, stderr);
    // kubectl deletes it and does not wait.
    await until("it is gone", async () => /NotFound/.test((await kubectl.run("get", "pod", "once")).stderr));
  });

  test("port-forward leads to the pod, and says why a port without a server fails", async () => {
    const forward = kubectl.begin(["port-forward", "pod/web", ":8080", ":9"]);
    await forward.says(/Forwarding from 127\.0\.0\.1:\d+ -> 9\n/);
    const port = (remote: number): string =>
      new RegExp(`127\\.0\\.0\\.1:(\\d+) -> ${remote}\\n`).exec(forward.stdout)?.[1] ?? "";
    const pages = Array.from({ length: 20 }, () => http(`http://127.0.0.1:${port(8080)}/`));
    for (const { body } of await Promise.all(pages)) assert.equal(body, "page\n");
    await assert.rejects(http(`http://127.0.0.1:${port(9)}/`));
    await until("it is said", () => /refused/.test(forward.stderr), { seen: () => forward.stderr });
    await forward.end("SIGINT");
  });

  test("cp carries a folder there and back", async () => {
    const from = join(site.dir, "from");
    mkdirSync(join(from, "deep"), { recursive: true });
    const bytes = randomBytes(MUCH);
    writeFileSync(join(from, "deep/bytes"), bytes);
    await kubectl.ok(
      ...["exec", "web", "--", "sh", "-c"],
      "for name in tar test; do [ -e /bin/$name ] || ln -s busybox /bin/$name; done",
    );
    await kubectl.ok("cp", from, "web:/tmp/copied");
    await kubectl.ok("cp", "web:/tmp/copied", join(site.dir, "back"));
    assert.ok(readFileSync(join(site.dir, "back/deep/bytes")).equals(bytes));
  });

  test("debug: an ephemeral container joins the running pod, with a terminal", async () => {
    const { status } = await kubectl.podIs("web", "runs", () => true);
    const session = kubectl.beginOnTerminal([
      ...["debug", "-it", "web", "--container=look", "--profile=general", `--image=${DEMO_IMAGE}`],
      ...["--image-pull-policy=Never", "--", "sh"],
    ]);
    const type = (text: string): void => void session.child.stdin?.write(text);
    await until(
      "the size of the terminal",
      () => {
        type("echo si''ze $(busybox stty size)\n");
        return session.stdout.includes("size 33 77");
      },
      { seen: () => session.stdout },
    );
    type("busybox wget -qO- http://127.0.0.1:8080/\n");
    await session.says("page");
    type("exit\n");
    assert.equal((await session.ended).code, 0, session.stdout);
    const pod = await kubectl.podIs("web", "has had a guest", ({ status: now }) =>
      now?.ephemeralContainerStatuses?.some(({ name, state }) => name === "look" && state?.terminated !== undefined),
    );
    assert.equal(pod.status?.containerStatuses?.[0]?.containerID, status?.containerStatuses?.[0]?.containerID);
  });

  test("a client that goes away in the middle leaves nothing open in the agent", async () => {
    const open = (): number => Number(spawnSync("sh", ["-c", `ls /proc/${agent.pid}/fd | wc -l`]).stdout.toString());
    const before = open();
    const sessions = Array.from({ length: 8 }, () =>
      kubectl.begin(["exec", "web", "--", "sh", "-c", "echo on; sleep 1000"]),
    );
    const follows = Array.from({ length: 4 }, () => kubectl.begin(["logs", "-f", "web"]));
    const watches = Array.from({ length: 4 }, () => kubectl.begin(["get", "pods", "-w"]));
    await Promise.all([
      ...sessions.map((one) => one.says("on\n")),
      ...follows.map((one) => one.says("serves")),
      ...watches.map((one) => one.says("web")),
    ]);
    for (const one of [...sessions, ...follows, ...watches]) await one.end("SIGKILL");
    await pause(100);
    await until("what they held is closed", () => open() <= before + 3, { seen: () => `${before} then ${open()}` });
  });
});
