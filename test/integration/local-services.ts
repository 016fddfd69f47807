/** Services of the local API on real pods: addresses, node ports, names, affinity, the API itself; and nothing is left. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, realpathSync } from "node:fs";
import { request } from "node:http";
import { request as httpsRequest, type RequestOptions } from "node:https";
import { connect } from "node:net";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { findInPath } from "../../src/adapters/embedded/daemon.ts";
import { errnoOf } from "../../src/lib/errors.ts";
import type { EndpointSlice, ObjectMeta, PodSpec, Service, ServiceSpec } from "../../src/model/generated/types.ts";
import { FOREVER, shell } from "./support/manifests.ts";
import { type Ended, kubelet } from "./support/program.ts";
import { type Agent, requireExec, requireMachine, Site } from "./support/site.ts";
import { pidsInCgroup } from "./support/traces.ts";
import { until } from "./support/until.ts";

requireMachine();
requireExec();
const absent = ["nft", "conntrack"].filter((program) => findInPath(program, process.env["PATH"]) === undefined);
if (absent.length > 0) {
  process.stdout.write(`needs ${absent.join(", ")}\n`);
  process.exit(77);
}

function nodeAddress(): string {
  const all = Object.entries(networkInterfaces()).flatMap(([name, list]) => (/^k[st]/.test(name) ? [] : (list ?? [])));
  return all.find(({ family, internal }) => family === "IPv4" && !internal)?.address ?? "127.0.0.1";
}

/** A pod that answers on port 8080 with its name. */
function server(name: string): PodSpec {
  const script = `mkdir -p /tmp/www; echo ${name} > /tmp/www/index.html; httpd -p 8080 -h /tmp/www; ${FOREVER}`;
  const probe = { tcpSocket: { port: 8080 }, periodSeconds: 1, failureThreshold: 1 };
  const ports = [{ name: "web", containerPort: 8080 }];
  return {
    containers: [shell("main", script, { ports, readinessProbe: probe })],
    terminationGracePeriodSeconds: 0,
    restartPolicy: "Never",
  };
}

/** A pod with the programs of the machine: the image's own are static, and cannot look names up. */
function client(): PodSpec {
  const places = [
    { name: "usr", path: "/usr" },
    { name: "lib", path: "/lib" },
    { name: "lib64", path: "/lib64" },
  ].filter(({ path }) => existsSync(path));
  const volumeMounts = places.map(({ name, path }) => ({ name, mountPath: path, readOnly: true }));
  return {
    containers: [shell("main", FOREVER, { volumeMounts })],
    volumes: places.map(({ name, path }) => ({ name, hostPath: { path: realpathSync(path) } })),
    terminationGracePeriodSeconds: 0,
  };
}

/** The end of one may end the others before their turn. */
function endProcess(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch (error) {
    if (errnoOf(error) !== "ESRCH") throw error;
  }
}

describe("services of the local API", () => {
  const site = new Site();
  let agent: Agent;

  /** A request to the API's socket. */
  function api<T>(method: string, path: string, body?: object): Promise<T> {
    return new Promise((resolve, reject) => {
      const socketPath = join(site.state, "apiserver.sock");
      const headers = { "content-type": "application/json" };
      const asked = request({ socketPath, path, method, headers }, (answer) => {
        let text = "";
        answer.setEncoding("utf8").on("data", (part: string) => {
          text += part;
        });
        answer.on("end", () => {
          if ((answer.statusCode ?? 500) < 400) resolve(JSON.parse(text) as T);
          else reject(new Error(`${method} ${path}: ${answer.statusCode} ${text}`));
        });
      });
      asked.on("error", reject);
      asked.end(body && JSON.stringify(body));
    });
  }

  const addPod = (name: string, spec: PodSpec, metadata: ObjectMeta = {}): Promise<unknown> =>
    api("POST", "/api/v1/namespaces/default/pods", {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name, ...metadata },
      spec,
    });
  const addService = (name: string, spec: ServiceSpec): Promise<Service> =>
    api("POST", "/api/v1/namespaces/default/services", { apiVersion: "v1", kind: "Service", metadata: { name }, spec });

  /** Names of the pods behind a service that are ready. */
  async function endpoints(service: string): Promise<string[]> {
    const path = `/apis/discovery.k8s.io/v1/namespaces/default/endpointslices?labelSelector=kubernetes.io/service-name=${service}`;
    const { items } = await api<{ items: EndpointSlice[] }>("GET", path);
    return items
      .flatMap(({ endpoints: list }) => list ?? [])
      .flatMap(({ conditions, targetRef }) => (conditions?.ready ? [targetRef?.name ?? ""] : []))
      .sort();
  }

  const readyAre = (service: string, ...names: string[]): Promise<boolean> =>
    until(`${service} has the endpoints ${names}`, async () => String(await endpoints(service)) === String(names));

  const exec = (pod: string, ...words: readonly string[]): Promise<Ended> =>
    kubelet(["exec", "--state-dir", site.state, pod, "--", ...words]);

  /** What a command in the client's container writes. */
  async function inClient(script: string): Promise<string> {
    const { stdout } = await exec("client", "/bin/sh", "-c", script);
    return stdout.trim();
  }

  /** Which pods answer to many requests of the client; the name is looked up by the C library, as programs do. */
  async function whoAnswers(name: string, { port = 80, times = 16 } = {}): Promise<string[]> {
    const find = `ip=$(getent ahostsv4 ${name} | head -n 1 | cut -d ' ' -f 1)`;
    const ask = `timeout 5 wget -qO- http://$ip:${port} || echo failed`;
    const heard = await inClient(`for i in $(seq ${times}); do ${find}; [ -n "$ip" ] || echo no address; ${ask}; done`);
    return [...new Set(heard.split("\n"))].sort();
  }

  /** Starts an agent and waits until its API answers, too. */
  async function up(): Promise<void> {
    agent = await site.up();
    await until("the API answers", () => api<object>("GET", "/version").catch(() => undefined));
  }

  before(async () => {
    await up();
    const labels = { app: "web" };
    await addPod("web-a", server("web-a"), { labels });
    await addPod("web-b", server("web-b"), { labels });
    await addPod("client", client());
    await addService("web", {
      selector: labels,
      type: "NodePort",
      ports: [{ name: "http", port: 80, targetPort: "web" }],
    });
    await addService("sticky", {
      selector: labels,
      sessionAffinity: "ClientIP",
      ports: [{ port: 80, targetPort: 8080 }],
    });
    await readyAre("web", "web-a", "web-b");
    await site.running("client");
  });
  after(() => site.close());

  it("pods of a service are found by its name from another pod", async () => {
    await until("both answer", async () => String(await whoAnswers("web")) === "web-a,web-b");
    assert.deepEqual(await whoAnswers("web.default.svc.cluster.local"), ["web-a", "web-b"]);
    assert.match(
      await inClient("cat /etc/resolv.conf"),
      /search default\.svc\.cluster\.local svc\.cluster\.local cluster\.local/,
    );
  });

  it("the node reaches a service by its address and by the node port", async () => {
    const { spec } = await api<Service>("GET", "/api/v1/namespaces/default/services/web");
    const nodePort = spec?.ports?.[0]?.nodePort;
    for (const url of [`http://${spec?.clusterIP}`, `http://${nodeAddress()}:${nodePort}`]) {
      const heard = new Set<string>();
      await until(`both answer at ${url}`, async () => {
        heard.add((await (await fetch(url, { headers: { connection: "close" } })).text()).trim());
        return heard.size === 2;
      });
    }
  });

  it("a pod reaches itself through its service", async () => {
    const labels = { app: "alone" };
    // First the service: a pod knows those by variables that were there before it.
    await addService("alone", { selector: labels, ports: [{ port: 80, targetPort: 8080 }] });
    await addPod("alone", server("alone"), { labels });
    await readyAre("alone", "alone");
    // The kernel's table follows the endpoints a moment later.
    const ask = "timeout 5 wget -qO- http://$ALONE_SERVICE_HOST || echo failed";
    let heard = "";
    const isHeard = async (): Promise<boolean> => {
      heard = (await exec("alone", "/bin/sh", "-c", ask)).stdout.trim();
      return heard === "alone";
    };
    await until("it answers itself", isHeard, { seen: () => heard });
  });

  it("a client stays with one pod where the service asks for it", async () => {
    await until("one answers", async () => /^web-[ab]$/.test(String(await whoAnswers("sticky", { times: 1 }))));
    const heard = await whoAnswers("sticky");
    assert.equal(heard.length, 1);
    assert.match(heard[0] ?? "", /^web-[ab]$/);
  });

  it("a headless service gives the addresses of its pods, and each pod its name", async () => {
    const labels = { app: "peers" };
    for (const hostname of ["peer-0", "peer-1"]) {
      await addPod(hostname, { ...server(hostname), hostname, subdomain: "peers" }, { labels });
    }
    await addService("peers", { selector: labels, clusterIP: "None", ports: [{ port: 8080 }] });
    await readyAre("peers", "peer-0", "peer-1");
    // Names follow the endpoints a moment later.
    let heard: string[] = [];
    const isHeard = async (): Promise<boolean> => {
      heard = await whoAnswers("peer-1.peers", { port: 8080, times: 3 });
      return String(heard) === "peer-1";
    };
    await until("the pod answers to its name", isHeard, { seen: () => heard });
    const pods = await Promise.all(
      ["peer-0", "peer-1"].map((name) =>
        api<{ status: { podIP: string } }>("GET", `/api/v1/namespaces/default/pods/${name}`),
      ),
    );
    let found = "";
    const hasBoth = async (): Promise<boolean> => {
      found = await inClient("getent ahostsv4 peers");
      return pods.every(({ status }) => found.includes(status.podIP));
    };
    await until("the service has the addresses of both", hasBoth, { seen: () => found });
  });

  it("a service without endpoints refuses at once, and a name that is not there does not resolve", async () => {
    await addService("empty", { selector: { app: "nobody" }, ports: [{ port: 80 }] });
    const found = await until("the name is there", async () => {
      const heard = await inClient("getent ahostsv4 empty.default.svc.cluster.local");
      return heard.split(" ", 1)[0] || undefined;
    });
    const began = performance.now();
    assert.match(await inClient(`timeout 20 wget -qO- http://${found} 2>&1`), /refused/);
    assert.ok(performance.now() - began < 10_000);
    assert.equal(await inClient("getent ahostsv4 nothing.default.svc.cluster.local || echo none"), "none");
  });

  it("pods reach the API with their token only, and may do what its rules give them", async () => {
    const host = await inClient("echo $KUBERNETES_SERVICE_HOST");
    assert.match(host, /^10\./);
    assert.equal(
      await inClient("nc -w 3 $KUBERNETES_SERVICE_HOST $KUBERNETES_SERVICE_PORT </dev/null && echo open"),
      "open",
    );
    const files = "/var/run/secrets/kubernetes.io/serviceaccount";
    const [token, ca] = [await inClient(`cat ${files}/token`), await inClient(`cat ${files}/ca.crt`)];
    const ask = (path: string, more: RequestOptions): Promise<number | undefined> =>
      new Promise((resolve, reject) => {
        const options = { host, port: 443, path, ca, servername: "kubernetes.default.svc", agent: false, ...more };
        const asked = httpsRequest(options, (answer) => {
          answer.resume();
          resolve(answer.statusCode);
        });
        asked.on("error", reject);
        asked.end(more.method === "POST" ? "{}" : undefined);
      });
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    const review = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    assert.equal(await ask(review, { method: "POST", headers }), 201);
    assert.equal(await ask("/api/v1/namespaces/default/secrets", { headers }), 403);
    assert.equal(await ask("/api/v1/pods", {}), 401);
    const kubeconfig = readFileSync(join(site.state, "kubeconfig"), "utf8");
    const part = (name: string): string =>
      Buffer.from(new RegExp(`${name}: (\\S+)`).exec(kubeconfig)?.[1] ?? "", "base64").toString();
    const administrator = { cert: part("client-certificate-data"), key: part("client-key-data") };
    assert.notEqual(administrator.cert, "");
    assert.equal(await ask("/api/v1/pods", administrator), 401);
  });

  it("a killed pod leaves the endpoints", async () => {
    const { metadata } = await api<{ metadata: ObjectMeta }>("GET", "/api/v1/namespaces/default/pods/web-b");
    for (const pid of pidsInCgroup(metadata.uid ?? "")) endProcess(pid);
    await readyAre("web", "web-a");
    await until("only the other answers", async () => String(await whoAnswers("web", { times: 4 })) === "web-a");
  });

  it("kill -9 of the agent disturbs no connection, and the next one goes on", async () => {
    const { spec } = await api<Service>("GET", "/api/v1/namespaces/default/services/web");
    const socket = connect(80, spec?.clusterIP ?? "");
    await new Promise<void>((resolve, reject) => socket.once("connect", resolve).once("error", reject));
    const rules = (): string =>
      execFileSync("nft", ["-s", "list", "table", "ip", site.layout.name], { encoding: "utf8" });
    const earlier = rules();
    await agent.end("SIGKILL");
    assert.equal((await (await fetch(`http://${spec?.clusterIP}`)).text()).trim(), "web-a");
    await up();
    await readyAre("web", "web-a");
    assert.equal((await (await fetch(`http://${spec?.clusterIP}`)).text()).trim(), "web-a");
    const heard = new Promise<string>((resolve) => socket.once("data", (part) => resolve(part.toString())));
    socket.write("GET / HTTP/1.0\r\n\r\n");
    assert.match(await heard, /200 OK/);
    socket.destroy();
    await until("names are answered again", async () => String(await whoAnswers("web", { times: 2 })) === "web-a");
    // Not sooner: until then the rules may be those of the agent that was killed, untouched.
    await until("the rules are the same", () => rules() === earlier, { seen: () => `${earlier}\nthen\n${rules()}` });
  });

  it("a table that somebody removed is written again with the next change", async () => {
    execFileSync("nft", ["delete", "table", "ip", site.layout.name]);
    await addPod("web-c", server("web-c"), { labels: { app: "web" } });
    await readyAre("web", "web-a", "web-c");
    await until("both answer", async () => String(await whoAnswers("web")) === "web-a,web-c");
  });
});
