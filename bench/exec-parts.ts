// Where the time of an exec goes: `tsx bench/exec-parts.ts [COUNT] [PODS]` (root). The same command through the main
// port of the agent and of the Go kubelet, and each time straight at the runtime beside it: what is left is the agent's.
import { randomBytes } from "node:crypto";
import { mkdtempSync } from "node:fs";
import { request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CriRuntime } from "../src/adapters/cri/cri-runtime.ts";
import { SystemClock } from "../src/lib/clock.ts";
import { fixed } from "../src/lib/live.ts";
import { silent } from "../src/lib/log.ts";
import { WebSocketChannels } from "../test/integration/support/main-port.ts";
import { TEST_IMAGES, TestContainerd } from "../test/support/containerd.ts";
import { TestControlPlane } from "../test/support/control-plane.ts";
import { ComparedAgent, type Contestant, containerdDir, goKubelet, nodeOf, removeAgentFiles } from "./compare-agent.ts";
import { isReady, Watched } from "./compare-cluster.ts";

const count = Number(process.argv[2] ?? 40);
const pods = Number(process.argv[3] ?? 20);
const { signal } = new AbortController();

/** Milliseconds from the beginning to the connection, the upgrade, the exit status, and the end of the connection. */
type Times = Readonly<Record<"asked" | "connected" | "upgraded" | "status" | "closed", number>>;

/** One WebSocket exec at `url`, which `find` gives. */
async function once(find: () => Promise<string>): Promise<Times> {
  const began = performance.now();
  const since = (): number => performance.now() - began;
  const url = new URL(await find());
  const asked = since();
  let connected = 0;
  let upgraded = 0;
  const made = await new Promise<WebSocketChannels>((resolve, reject) => {
    const call = (url.protocol === "https:" ? httpsRequest : httpRequest)(url, {
      agent: false,
      rejectUnauthorized: false,
      headers: {
        Connection: "Upgrade",
        Upgrade: "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Protocol": "v4.channel.k8s.io",
        "Sec-WebSocket-Key": randomBytes(16).toString("base64"),
      },
    });
    call.on("socket", (socket) => {
      socket.on(url.protocol === "https:" ? "secureConnect" : "connect", () => {
        connected = since();
      });
    });
    call.on("upgrade", (_answer, socket, head) => {
      upgraded = since();
      socket.on("error", () => socket.destroy());
      resolve(new WebSocketChannels({ socket, head, protocol: "" }));
    });
    call.on("response", (answer) => reject(new Error(`no upgrade: ${answer.statusCode}`)));
    call.on("error", reject).end();
  });
  let status = 0;
  const look = setInterval(() => {
    if (status === 0 && made.text(3) !== "") status = since();
  }, 0.5);
  await made.closed;
  clearInterval(look);
  if (!made.text(3).includes("Success")) throw new Error(`exec failed: ${made.text(3)}`);
  const closed = since();
  return { asked, connected, upgraded, status: status || closed, closed };
}

function median(all: readonly Times[], key: keyof Times): string {
  const sorted = all.map((one) => one[key]).sort((a, b) => a - b);
  return (sorted[Math.floor(sorted.length / 2)] ?? Number.NaN).toFixed(1);
}

interface Place {
  readonly plane: TestControlPlane;
  readonly containerd: TestContainerd;
  readonly dir: string;
  readonly cri: CriRuntime;
  readonly watched: Watched;
}

async function measure(who: Contestant, place: Place): Promise<void> {
  const { watched, cri } = place;
  const node = nodeOf(who);
  const agent = await ComparedAgent.start(who, place);
  const names = Array.from({ length: pods }, (_, at) => `${node}-exec-${at}`);
  const command = ["/bin/sh", "-c", "trap 'exit 0' TERM; while :; do sleep 3600 & wait $!; done"];
  const containers = [{ name: "main", image: TEST_IMAGES.busybox, imagePullPolicy: "Never", command }];
  const spec = { nodeName: node, terminationGracePeriodSeconds: 1, containers };
  try {
    await watched.until("the node is ready", () => isReady(watched.node(node)));
    await Promise.all(names.map((name) => watched.create({ metadata: { name, namespace: "default" }, spec })));
    for (const name of names) await watched.until(`${name} is ready`, () => isReady(watched.pod(name)));
    const [first = ""] = names;
    const status = watched.pod(first)?.status?.containerStatuses?.[0];
    const id = status?.containerID?.replace("containerd://", "") ?? "";
    const url = `https://127.0.0.1:${agent.port}/exec/default/${first}/main?command=true&output=1&error=1`;
    const streams = { tty: false, stdin: false, stdout: true, stderr: true };
    const ways = {
      [`through ${who}`]: () => once(() => Promise.resolve(url)),
      "  straight at the runtime": () => once(() => cri.exec(id, { command: ["true"], ...streams }, { signal })),
      "  ExecSync of the runtime": async () => {
        const began = performance.now();
        await cri.execSync(id, { command: ["true"], timeoutSeconds: 10 }, { signal });
        const closed = performance.now() - began;
        return { asked: 0, connected: 0, upgraded: 0, status: closed, closed };
      },
    };
    const all = new Map<string, Times[]>(Object.keys(ways).map((way) => [way, []]));
    for (let round = -3; round < count; round++) {
      for (const [way, work] of Object.entries(ways)) {
        const times = await work();
        if (round >= 0) all.get(way)?.push(times);
      }
    }
    for (const [way, times] of all) {
      const parts = (["asked", "connected", "upgraded", "closed"] as const).map(
        (key) => `${key} ${median(times, key)}`,
      );
      console.log(`${way}: ${parts.join(", ")} ms`);
    }
    await Promise.all(names.map((name) => watched.remove(name)));
    for (const name of names) await watched.until(`${name} is gone`, () => watched.pod(name) === undefined);
  } finally {
    await agent.stop();
  }
}

const binDir = containerdDir();
const plane = await TestControlPlane.start({ controllers: true });
const containerd = await TestContainerd.start(binDir === undefined ? {} : { binDir });
const dir = mkdtempSync(join(tmpdir(), "kexe-"));
const watched = new Watched(plane.clients().calls);
const cri = new CriRuntime(
  { clock: new SystemClock(), log: silent },
  { endpoint: containerd.endpoint, requestTimeoutMs: fixed(30_000) },
);
try {
  plane.kubectl("wait", "--for=create", "serviceaccount/default", "--timeout=60s");
  const contestants: readonly Contestant[] = goKubelet() === undefined ? ["kubelet-ts"] : ["kubelet-ts", "go"];
  for (const who of contestants) await measure(who, { plane, containerd, dir, cri, watched });
} finally {
  cri.close();
  watched.close();
  await containerd.stop();
  await plane.stop();
  removeAgentFiles(dir);
}
