/** What a pod offers to others on real containers: gRPC to its probes, ports of other protocols than TCP, a name of its own. */
import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { readFileSync, writeFileSync } from "node:fs";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { freePort } from "../support/free-port.ts";
import { FOREVER, forever, manifest, shell } from "./support/manifests.ts";
import { DATAGRAM_SERVER, HEALTH_SERVER, nodePod } from "./support/node-server.ts";
import { type Agent, requireMachine, Site } from "./support/site.ts";
import { said, statusOf } from "./support/told.ts";
import { pause, until } from "./support/until.ts";

requireMachine();

const SERVING = "1";
const NOT_SERVING = "2";

function hostAddress(): string {
  const all = Object.values(networkInterfaces()).flatMap((list) => list ?? []);
  return all.find(({ family, internal }) => family === "IPv4" && !internal)?.address ?? "127.0.0.1";
}

/** The answer to one datagram, or undefined when none comes soon. */
async function ask(address: string, port: number, text: string): Promise<string | undefined> {
  const socket = createSocket("udp4");
  try {
    const answer = new Promise<string>((resolve) => socket.once("message", (message) => resolve(message.toString())));
    socket.on("error", () => undefined);
    socket.send(text, port, address);
    return await Promise.race([answer, pause(500).then(() => undefined)]);
  } finally {
    socket.close();
  }
}

function whyNoSctp(): string | false {
  const known = readFileSync("/proc/net/protocols", "utf8");
  return /^SCTP /m.test(known) ? false : "this kernel has no SCTP";
}

describe("a pod's network", () => {
  const site = new Site();
  let agent: Agent;

  /** Another one in each run. */
  const subnet = `10.${200 + (process.pid % 50)}.${(process.pid >> 6) % 256}`;

  before(async () => {
    agent = await site.up([`--pod-cidr=${subnet}.0/24`]);
  });
  after(() => site.close());

  it("has an address of podCIDR", async () => {
    site.write(manifest("addressed", { containers: [shell("main", FOREVER)] }));
    const { ip } = await site.running("addressed");
    assert.equal(ip.slice(0, ip.lastIndexOf(".")), subnet);
    site.remove("addressed");
    await site.gone("addressed");
  });

  it("a gRPC probe asks for its service: ready while it serves, not ready while it does not", async () => {
    const dir = join(site.dir, "grpc");
    const probe = { grpc: { port: 9000, service: "shop" }, periodSeconds: 1, failureThreshold: 1, timeoutSeconds: 30 };
    const spec = nodePod(dir, HEALTH_SERVER, { readinessProbe: probe });
    const tell = (service: string, status: string): void => writeFileSync(join(dir, `service ${service}`), status);
    tell("", SERVING);
    tell("shop", NOT_SERVING);
    site.write(manifest("asked", spec));
    await said(site, "asked", /serving/);
    // Each status is seen by a probe that began after it was set: an answer for the wrong service would be SERVING.
    await site.event(
      "Unhealthy",
      "asked",
      /Readiness probe failed: service unhealthy \(responded with "NOT_SERVING"\)/,
    );
    tell("shop", SERVING);
    await site.pod("asked", "is ready", ({ readyContainers }) => readyContainers === 1);
    tell("shop", NOT_SERVING);
    await site.pod("asked", "is not ready", ({ readyContainers }) => readyContainers === 0);
    site.remove("asked");
    await site.gone("asked");
  });

  it("a gRPC liveness probe that fails restarts the container", async () => {
    const dir = join(site.dir, "live");
    const probe = { grpc: { port: 9000 }, periodSeconds: 1, failureThreshold: 1, timeoutSeconds: 30 };
    const spec = nodePod(dir, HEALTH_SERVER, { livenessProbe: { ...probe, initialDelaySeconds: 2 } });
    writeFileSync(join(dir, "service "), SERVING);
    site.write(manifest("lively", spec));
    await site.running("lively");
    await said(site, "lively", /serving/);
    writeFileSync(join(dir, "service "), NOT_SERVING);
    await site.pod("lively", "was restarted", ({ restarts }) => restarts > 0);
    await site.event("Unhealthy", "lively", /Liveness probe failed: service unhealthy/);
    site.remove("lively");
    await site.gone("lively");
  });

  it("a UDP host port leads to the pod, TCP on the same number does not clash, and it is free again afterwards", async () => {
    const hostPort = await freePort();
    const ports = [{ containerPort: 7000, hostPort, protocol: "UDP" }];
    site.write(manifest("datagrams", nodePod(join(site.dir, "udp"), DATAGRAM_SERVER, { ports })));
    await said(site, "datagrams", /serving/);
    const { ip } = await site.running("datagrams");
    assert.equal(await until("the pod's own address answers", () => ask(ip, 7000, "direct")), "DIRECT");
    const answer = await until("the host port answers", () => ask(hostAddress(), hostPort, "hello"));
    assert.equal(answer, "HELLO");
    const tcp = shell("main", FOREVER, { ports: [{ containerPort: 80, hostPort, protocol: "TCP" }] });
    site.write(manifest("beside", { containers: [tcp] }));
    await site.running("beside");
    const udp = shell("main", FOREVER, { ports: [{ containerPort: 80, hostPort, protocol: "UDP" }] });
    site.write(manifest("clashing", { containers: [udp] }));
    await site.pod("clashing", "is refused", ({ phase }) => phase === "Failed");
    assert.equal((await statusOf(agent, "clashing"))?.reason, "NodePorts");
    for (const name of ["datagrams", "beside", "clashing"]) site.remove(name);
    await site.gone("datagrams");
    assert.equal(await ask(hostAddress(), hostPort, "anybody"), undefined);
  });

  it("a port of SCTP is a pod's like any other", async () => {
    const ports = [{ containerPort: 7001, protocol: "SCTP" }];
    site.write(manifest("sctp", { containers: [shell("main", FOREVER, { ports })] }));
    await site.running("sctp");
    site.remove("sctp");
    await site.gone("sctp");
  });

  it("a host port of SCTP is opened", { skip: whyNoSctp() }, async () => {
    const ports = [{ containerPort: 7001, hostPort: await freePort(), protocol: "SCTP" }];
    site.write(manifest("sctp-host", { containers: [shell("main", FOREVER, { ports })] }));
    await site.running("sctp-host");
    site.remove("sctp-host");
    await site.gone("sctp-host");
  });

  it("hostnameOverride is the name inside, whatever else the pod is called", async () => {
    const spec = { hostname: "web-1", subdomain: "group", hostnameOverride: "other.example.test" };
    site.write(
      manifest("renamed", { ...spec, containers: [shell("main", forever("hostname; cat /etc/hosts; echo end"))] }),
    );
    const lines = (await said(site, "renamed", /^end$/m)).split("\n");
    assert.equal(lines[0], "other.example.test");
    assert.ok(
      lines.some((line) => /^\d+\.\S+\tother\.example\.test$/.test(line)),
      lines.join("\n"),
    );
    assert.ok(!lines.some((line) => line.includes("web-1")), lines.join("\n"));
    site.remove("renamed");
    await site.gone("renamed");
  });
});
