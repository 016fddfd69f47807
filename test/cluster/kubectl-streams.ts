/** kubectl's streams on a real node: logs, exec, attach, port-forward, cp and the node's proxy, all through the API server. */
import assert from "node:assert/strict";
import { type SpawnOptions, spawnSync } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { Pod, PodList } from "../../src/model/generated/types.ts";
import { http } from "../integration/support/http.ts";
import { type Ended, Program } from "../integration/support/program.ts";
import { pause, until } from "../integration/support/until.ts";
import { ClusterSite, skipWithoutCluster, testPod } from "../support/cluster-site.ts";
import { TEST_IMAGES } from "../support/containerd.ts";
import { kubeBinDir } from "../support/control-plane.ts";
import { metricProblems } from "../support/metric-names.ts";

skipWithoutCluster();

const KUBECTL = join(kubeBinDir(), "kubectl");
const WITH_INPUT: SpawnOptions = { stdio: ["pipe", "pipe", "pipe"] };
/** Runs until it is told to stop, and then ends at once. */
const WAIT = "trap 'exit 0' TERM; while :; do sleep 3600 & wait $!; done";
/** More than any window or buffer on the way. */
const MUCH = 3_000_000;

describe("the streams of kubectl", () => {
  let site: ClusterSite;
  let agent: Program;
  const started: Program[] = [];

  /** The command line of kubectl as administrator. */
  const command = (args: readonly string[]): string[] => [
    ...[KUBECTL, "--kubeconfig", join(site.plane.dir, "admin.kubeconfig")],
    ...args,
  ];
  const begin = (args: readonly string[], options: SpawnOptions = {}): Program => {
    const program = new Program(command(args), { env: { ...process.env, HOME: site.dir }, ...options });
    started.push(program);
    return program;
  };
  const run = (...args: readonly string[]): Promise<Ended> => begin(args).ended;
  const terminalName = (): string => join(site.dir, "terminal");
  /** kubectl on a terminal of its own, 77 wide and 33 high. */
  const beginOnTerminal = (args: readonly string[]): Program => {
    const words = command(args).map((word) => `'${word}'`);
    const line = `stty rows 33 cols 77; tty > ${terminalName()}; exec ${words.join(" ")}`;
    const env = { ...process.env, HOME: site.dir, SHELL: "/bin/sh", TERM: "xterm" };
    const program = new Program(["script", "-qec", line, "/dev/null"], { ...WITH_INPUT, env });
    started.push(program);
    return program;
  };
  /** The volume `flag` of a pod. */
  const flagsOf = ({ metadata }: Pod): string =>
    join(site.root, "pods", metadata.uid ?? "", "volumes/kubernetes.io~empty-dir/flag");
  const proxied = (path: string): string => site.kubectl("get", "--raw", `/api/v1/nodes/${site.nodeName}/proxy${path}`);

  before(async () => {
    site = await ClusterSite.start();
    agent = await site.join([
      ...[`--client-ca-file=${join(site.plane.dir, "pki/ca.crt")}`, "--anonymous-auth=false"],
      ...["--authorization-mode=Webhook", "--authentication-token-webhook"],
    ]);
    await site.nodeReady();
    const script = `mkdir -p /tmp/w; echo page > /tmp/w/index.html; httpd -p 8080 -h /tmp/w; ${WAIT}`;
    const talk = shell("read line; echo got $line; read line; echo a problem >&2; read line; echo then $line", {
      name: "talk",
      stdin: true,
      tty: false,
    });
    site.apply(testPod("web", { containers: [shell(script)] }));
    site.apply(testPod("talk", { restartPolicy: "Never", containers: [talk] }));
    await site.podReady("web");
    await site.podReady("talk");
  });
  after(async () => {
    await Promise.all(started.filter(({ isOver }) => !isOver).map((program) => program.end("SIGKILL")));
    await site?.close();
  });

  test("logs: of the running instance, of the one before it, the end, since when, and with times", async () => {
    const script = `n=0; [ -e /flag/0 ] && n=1; touch /flag/$n; echo first $n; until [ -e /flag/go-$n ]; do sleep 0.1; done; echo second $n >&2; [ $n = 0 ] && exit 1; ${WAIT}`;
    site.apply(
      testPod("twice", {
        volumes: [{ name: "flag", emptyDir: {} }],
        containers: [shell(script, { volumeMounts: [{ name: "flag", mountPath: "/flag" }] })],
      }),
    );
    for (const n of [0, 1]) {
      const pod = await site.podIs("twice", `runs, restarted ${n} times`, ({ status }) => {
        const [main] = status?.containerStatuses ?? [];
        return main?.restartCount === n && main.state?.running !== undefined;
      });
      // The runtime reads the two streams of a container independently: the second line waits for the first.
      await until("the first line", () => site.kubectl("logs", "twice") === `first ${n}\n`);
      writeFileSync(join(flagsOf(pod), `go-${n}`), "");
    }
    await until("all is written", () => site.kubectl("logs", "twice") === "first 1\nsecond 1\n");
    assert.equal(site.kubectl("logs", "twice", "--previous"), "first 0\nsecond 0\n");
    assert.equal(site.kubectl("logs", "twice", "--tail=1"), "second 1\n");
    assert.equal(site.kubectl("logs", "twice", "--since=1h"), "first 1\nsecond 1\n");
    assert.equal(site.kubectl("logs", "twice", "--since-time=2100-01-01T00:00:00Z"), "");
    assert.equal(site.kubectl("logs", "twice", "--limit-bytes=7"), "first 1");
    assert.match(site.kubectl("logs", "twice", "--timestamps", "--tail=1"), /^\d{4}-\d\d-\d\dT[\d:.]+Z second 1\n$/);
    const none = await run("logs", "web", "--previous");
    assert.notEqual(none.code, 0);
    assert.match(none.stderr, /previous terminated container "main" in pod "web" not found/);
    site.kubectl("delete", "pod", "twice", "--wait=false");
  });

  test("logs -f has every line to the end of the container, and again of the one that follows it", async () => {
    const script =
      "n=0; [ -e /flag/0 ] && n=1; touch /flag/$n; i=0; while [ $i -lt 400 ]; do echo $n-$i; i=$((i+1)); [ $((i % 50)) = 0 ] && sleep 0.2; done; [ $n = 0 ] && { until [ -e /flag/go ]; do sleep 0.1; done; exit 1; }; sleep 1000";
    site.apply(
      testPod("counts", {
        volumes: [{ name: "flag", emptyDir: {} }],
        terminationGracePeriodSeconds: 1,
        containers: [shell(script, { volumeMounts: [{ name: "flag", mountPath: "/flag" }] })],
      }),
    );
    const pod = await site.podIs("counts", "runs", ({ status }) => {
      return status?.containerStatuses?.[0]?.state?.running !== undefined;
    });
    const following = begin(["logs", "-f", "counts"]);
    await until("the last line is there", () => following.stdout.endsWith("0-399\n"));
    writeFileSync(join(flagsOf(pod), "go"), "");
    const first = await following.ended;
    assert.equal(first.code, 0, first.stderr);
    assert.deepEqual(first.stdout.trimEnd().split("\n"), numbers(0));
    await site.podIs("counts", "has restarted", ({ status }) => {
      const [main] = status?.containerStatuses ?? [];
      return main?.restartCount === 1 && main.state?.running !== undefined;
    });
    const second = begin(["logs", "-f", "counts"]);
    await until("the last line is there", () => second.stdout.endsWith("1-399\n"));
    assert.equal(second.isOver, false);
    site.kubectl("delete", "pod", "counts", "--wait=false");
    const { stdout, code, stderr } = await second.ended;
    assert.equal(code, 0, stderr);
    assert.deepEqual(stdout.trimEnd().split("\n"), numbers(1));
    await site.podGone("counts");
  });

  test("exec: exit code, stdout and stderr apart, stdin with its end", async () => {
    const ran = await run("exec", "web", "--", "sh", "-c", "echo out; echo err >&2; exit 7");
    assert.equal(ran.code, 7);
    assert.equal(ran.stdout, "out\n");
    assert.match(ran.stderr, /^err\n/);
    const sum = begin(["exec", "-i", "web", "--", "busybox", "sha256sum"], WITH_INPUT);
    const bytes = randomBytes(MUCH);
    sum.child.stdin?.on("error", () => undefined).end(bytes);
    const { stdout, code, stderr } = await sum.ended;
    assert.equal(code, 0, stderr);
    assert.equal(stdout, `${createHash("sha256").update(bytes).digest("hex")}  -\n`);
    const much = await run("exec", "web", "--", "sh", "-c", `head -c ${MUCH} /dev/zero | tr '\\0' x`);
    assert.equal(much.stdout.length, MUCH);
    const missing = await run("exec", "web", "--", "no-such-program");
    assert.notEqual(missing.code, 0);
    assert.match(missing.stderr, /no-such-program/);
    // The runtime answers input that nobody reads with a reset, behind the words that say why.
    for (let round = 0; round < 10; round++) {
      const unheard = begin(["exec", "-i", "web", "--", "no-such-program"], WITH_INPUT);
      unheard.child.stdin?.on("error", () => undefined).end(bytes);
      const ended = await unheard.ended;
      assert.notEqual(ended.code, 0, `round ${round}`);
      assert.match(ended.stderr, /no-such-program/, `round ${round}`);
    }
    const nobody = await run("exec", "web", "-c", "nope", "--", "true");
    assert.match(nobody.stderr, /container (nope is not valid|not found)/);
  });

  test("exec -it has a terminal of the client's size that follows it", async () => {
    const shellInPod = beginOnTerminal(["exec", "-it", "web", "--", "sh"]);
    const type = (text: string): void => void shellInPod.child.stdin?.write(text);
    await until("the prompt", () => shellInPod.stdout.includes("# "), { seen: () => shellInPod.stdout });
    type("tty\n");
    await shellInPod.says("/dev/pts/");
    // The size has a stream of its own, and may come after the input.
    await until(
      "the size",
      () => {
        type("echo si''ze $(stty size)\n");
        return shellInPod.stdout.includes("size 33 77");
      },
      { seen: () => shellInPod.stdout },
    );
    spawnSync("stty", ["-F", readFileSync(terminalName(), "utf8").trim(), "rows", "44", "cols", "88"]);
    await until("the new size", () => {
      type("echo si''ze $(stty size)\n");
      return shellInPod.stdout.includes("size 44 88");
    });
    type("exit 5\n");
    const { code } = await shellInPod.ended;
    assert.equal(code, 5);
  });

  test("attach: what is typed reaches the process, what it says comes back, and the end is the end", async () => {
    const attached = begin(["attach", "-i", "talk"], WITH_INPUT);
    const logged = (words: string): Promise<true> =>
      until(`the log of ${JSON.stringify(words)}`, () => site.kubectl("logs", "talk") === words);
    attached.child.stdin?.on("error", () => undefined).write("one\n");
    await attached.says("got one\n");
    // Each line of a stream waits until that of the other is in the log, which has both.
    await logged("got one\n");
    attached.child.stdin?.write("on\n");
    await until("its errors", () => attached.stderr.includes("a problem"));
    await logged("got one\na problem\n");
    attached.child.stdin?.write("two\n");
    const { code, stdout, stderr } = await attached.ended;
    assert.equal(code, 0, stderr);
    assert.match(stdout, /got one\nthen two\n$/);
    await site.podIs("talk", "succeeded", ({ status }) => status?.phase === "Succeeded");
    await logged("got one\na problem\nthen two\n");
    site.kubectl("delete", "pod", "talk", "--wait=false");
  });

  test("run -i --rm is attached until its end, with its exit code", async () => {
    const word = begin(
      [
        ...["run", "once", "-i", "--rm", "--quiet", "--restart=Never", "--image-pull-policy=Never"],
        ...[`--image=${TEST_IMAGES.busybox}`, "--command", "--", "sh", "-c", "read x; echo got $x; exit 3"],
      ],
      WITH_INPUT,
    );
    word.child.stdin?.on("error", () => undefined).end("hello\n");
    const { code, stdout, stderr } = await word.ended;
    assert.equal(stdout, "got hello\n", stderr);
    assert.equal(code, 3, stderr);
    await site.podGone("once");
  });

  test("port-forward leads to the pod, again and again, and a port without a server is a word, not the end", async () => {
    const forward = begin(["port-forward", "pod/web", ":8080", ":9"]);
    await forward.says(/Forwarding from 127\.0\.0\.1:\d+ -> 9\n/);
    const port = (remote: number): string =>
      new RegExp(`127\\.0\\.0\\.1:(\\d+) -> ${remote}\\n`).exec(forward.stdout)?.[1] ?? "";
    for (let round = 0; round < 20; round++) {
      assert.equal((await http(`http://127.0.0.1:${port(8080)}/`)).body, "page\n");
    }
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
    writeFileSync(join(from, "word"), "hello");
    site.kubectl("exec", "web", "--", "sh", "-c", "for name in tar test; do ln -s busybox /bin/$name; done");
    const there = await run("cp", from, "web:/tmp/copied");
    assert.equal(there.code, 0, there.stderr);
    assert.equal(site.kubectl("exec", "web", "--", "cat", "/tmp/copied/word"), "hello");
    const back = await run("cp", "web:/tmp/copied", join(site.dir, "back"));
    assert.equal(back.code, 0, back.stderr);
    assert.ok(readFileSync(join(site.dir, "back/deep/bytes")).equals(bytes));
    // kubectl cp itself ends as soon as the archive does, and does not wait for what tar says beside it (on the Go
    // kubelet too): only the command that it runs can be held to its words.
    await run("cp", "web:/tmp/nope", join(site.dir, "nope"));
    assert.ok(!existsSync(join(site.dir, "nope")));
    for (let round = 0; round < 30; round++) {
      const nope = await run("exec", "web", "--", "tar", "cf", "-", "/tmp/nope");
      assert.equal(nope.code, 1, `round ${round}`);
      assert.match(nope.stderr, /nope: No such file or directory\n[^]*delayed[^]*exit code 1\n$/, `round ${round}`);
      assert.match(nope.stdout, /^\0+$/, `round ${round}`);
    }
  });

  test("debug: an ephemeral container joins the running pod, and exec and logs reach it", async () => {
    const before = site.pod("web")?.status?.containerStatuses?.[0]?.containerID;
    const debug = await run(
      ...["debug", "web", "--container=look", "--profile=general", `--image=${TEST_IMAGES.busybox}`],
      ...["--image-pull-policy=Never", "--", "sh", "-c", `echo looking; ${WAIT}`],
    );
    assert.equal(debug.code, 0, debug.stderr);
    await site.podIs("web", "has its guest", ({ status }) =>
      status?.ephemeralContainerStatuses?.some(({ name, state }) => name === "look" && state?.running !== undefined),
    );
    await until("its word", () => site.kubectl("logs", "web", "-c", "look") === "looking\n");
    const seen = site.kubectl("exec", "web", "-c", "look", "--", "wget", "-qO-", "http://127.0.0.1:8080/");
    assert.equal(seen, "page\n");
    assert.equal(site.pod("web")?.status?.containerStatuses?.[0]?.containerID, before);
  });

  test("debug -it attaches with the terminal of the ephemeral container", async () => {
    const session = beginOnTerminal([
      ...["debug", "-it", "web", "--container=shell", "--profile=general", `--image=${TEST_IMAGES.busybox}`],
      ...["--image-pull-policy=Never", "--", "sh"],
    ]);
    const type = (text: string): void => void session.child.stdin?.write(text);
    await until(
      "the size of the terminal",
      () => {
        type("echo si''ze $(stty size)\n");
        return session.stdout.includes("size 33 77");
      },
      { limitMs: 90_000, seen: () => session.stdout },
    );
    type("tty; wget -qO- http://127.0.0.1:8080/\n");
    await session.says("/dev/pts/");
    await session.says("page");
    type("exit\n");
    const { code } = await session.ended;
    assert.equal(code, 0, session.stdout);
    const [shellStatus] = (site.pod("web")?.status?.ephemeralContainerStatuses ?? []).filter(
      ({ name }) => name === "shell",
    );
    assert.ok(shellStatus);
  });

  test("the node's own pages come through the API server", async () => {
    assert.equal(proxied("/healthz"), "ok");
    const { items } = JSON.parse(proxied("/pods")) as PodList;
    assert.ok(items.some(({ metadata }) => metadata.name === "web"));
    const { kubeletconfig } = JSON.parse(proxied("/configz")) as { kubeletconfig: Record<string, unknown> };
    assert.equal(kubeletconfig["kind"], "KubeletConfiguration");
    const metrics = proxied("/metrics");
    assert.match(metrics, /^kubelet_running_pods \d+$/m);
    assert.match(metrics, /^kubelet_pod_status_sync_duration_seconds_count [1-9]/m);
    assert.match(metrics, /^kubelet_node_startup_post_registration_duration_seconds \d/m);
    assert.deepEqual(metricProblems(metrics, ["always", "cluster"]), []);
    assert.match(proxied("/logs/"), /<a href=/);
  });

  test("who may not is refused by the node's own question, whatever the transport", async () => {
    site.kubectl("create", "serviceaccount", "eve");
    const token = site.kubectl("create", "token", "eve").trim();
    const port = /"--port=(\d+)"|--port=(\d+)/.exec(agent.child.spawnargs.join(" "))?.[2];
    const ask = (path: string, ...more: string[]): string => {
      const words = [
        "-sk",
        "-m",
        "10",
        "-o",
        "/dev/null",
        "-w",
        "%{http_code}",
        "-H",
        `Authorization: Bearer ${token}`,
      ];
      return spawnSync("curl", [...words, ...more, `https://127.0.0.1:${port}${path}`], { encoding: "utf8" }).stdout;
    };
    const upgrade = ["-H", "Connection: Upgrade", "-H", "Upgrade: websocket"];
    assert.equal(ask("/pods"), "403");
    assert.equal(ask("/exec/default/web/main?command=id&output=1", ...upgrade), "403");
    assert.equal(ask("/exec/default/nope/main?command=id&output=1", ...upgrade), "403");
    site.kubectl("create", "clusterrole", "sees-pods", "--verb=get", "--resource=nodes/pods");
    site.kubectl("create", "clusterrolebinding", "eve", "--clusterrole=sees-pods", "--serviceaccount=default:eve");
    site.kubectl("create", "serviceaccount", "eva");
    site.kubectl("create", "clusterrolebinding", "eva", "--clusterrole=sees-pods", "--serviceaccount=default:eva");
    const allowed = site.kubectl("create", "token", "eva").trim();
    const words = [
      "-sk",
      "-m",
      "10",
      "-o",
      "/dev/null",
      "-w",
      "%{http_code}",
      "-H",
      `Authorization: Bearer ${allowed}`,
    ];
    const seen = (path: string): string =>
      spawnSync("curl", [...words, `https://127.0.0.1:${port}${path}`], { encoding: "utf8" }).stdout;
    // A denial from before the server knew of the binding is cached for 30 s.
    await until("the role counts", () => seen("/pods") === "200", { limitMs: 90_000, seen: () => seen("/pods") });
    assert.equal(seen("/configz"), "403");
  });

  test("a client that goes away in the middle leaves nothing running in the agent", async () => {
    const open = (): number => Number(spawnSync("sh", ["-c", `ls /proc/${agent.pid}/fd | wc -l`]).stdout.toString());
    const before = open();
    const sessions = Array.from({ length: 10 }, () => begin(["exec", "web", "--", "sh", "-c", "echo on; sleep 1000"]));
    const follows = Array.from({ length: 5 }, () => begin(["logs", "-f", "web", "-c", "look"]));
    await Promise.all([...sessions.map((one) => one.says("on\n")), ...follows.map((one) => one.says("looking"))]);
    for (const one of [...sessions, ...follows]) await one.end("SIGKILL");
    await pause(100);
    await until("what they held is closed", () => open() <= before + 3, { seen: () => `${before} then ${open()}` });
  });
});

function numbers(instance: number): string[] {
  return Array.from({ length: 400 }, (_, index) => `${instance}-${index}`);
}

function shell(script: string, more: object = {}): object {
  return {
    name: "main",
    image: TEST_IMAGES.busybox,
    imagePullPolicy: "Never",
    command: ["/bin/sh", "-c", script],
    ...more,
  };
}
