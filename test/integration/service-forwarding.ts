/** The table of forwardings on the real kernel, in a network namespace of its own: its contract, and what packets do. */
import assert from "node:assert/strict";
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { after, before, describe, it } from "node:test";
import { findInPath } from "../../src/adapters/embedded/daemon.ts";
import { LinuxHost } from "../../src/adapters/host/index.ts";
import { Conntrack, type Forwarding, NftTable, type TableOptions } from "../../src/adapters/nftables/index.ts";
import { manyListeners } from "../../src/lib/abort.ts";
import { SystemClock } from "../../src/lib/clock.ts";
import { forwardingSuite } from "../contract/forwarding-suite.ts";
import { until } from "./support/until.ts";

const absent = ["nft", "conntrack", "ip", "busybox"].filter(
  (program) => findInPath(program, process.env["PATH"]) === undefined,
);
if (process.getuid?.() !== 0) absent.unshift("root");
if (absent.length > 0) {
  process.stdout.write(`needs ${absent.join(", ")}\n`);
  process.exit(77);
}

const host = new LinuxHost({ clock: new SystemClock() });
const signal = { signal: manyListeners().signal };
let count = 0;

const SERVER = `
  const [number] = process.argv.slice(-1);
  require("node:net").createServer((socket) => {
    socket.on("error", () => undefined);
    socket.end(number + " " + socket.remoteAddress + "\\n");
  }).listen(8080, "0.0.0.0");
  const socket = require("node:dgram").createSocket("udp4");
  socket.on("message", (_message, { address, port }) => socket.send(number, port, address));
  socket.bind(5300, "0.0.0.0");
`;
/** Sends a datagram from a fixed port and prints the answer. */
const DATAGRAM_CLIENT = `
  const [address, port] = process.argv.slice(-2);
  const socket = require("node:dgram").createSocket("udp4");
  socket.on("message", (message) => { console.log(String(message)); socket.close(); process.exit(0); });
  socket.bind(4000, () => socket.send("x", Number(port), address));
  setTimeout(() => process.exit(1), 10000);
`;

function run(...[program = "", ...args]: readonly string[]): string {
  return execFileSync(program, args, { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
}

/** A network namespace with a bridge, as a node has it. */
class Node {
  readonly name = `kts-${process.pid}-${count++}`;
  private readonly pods: string[] = [];
  private readonly children: ReturnType<typeof spawn>[] = [];
  readonly options: TableOptions;

  constructor({ hidesPods = false }: { readonly hidesPods?: boolean } = {}) {
    this.options = {
      name: "kubelet-ts-test",
      serviceSubnet: "10.43.0.0/16",
      podSubnet: "10.88.0.0/24",
      bridge: "br0",
      hidesPods,
    };
    run("ip", "netns", "add", this.name);
    this.ip("link", "set", "lo", "up");
    this.ip("link", "add", "br0", "type", "bridge");
    this.ip("addr", "add", "10.88.0.1/24", "dev", "br0");
    this.ip("addr", "add", "192.0.2.10/24", "dev", "br0");
    this.ip("link", "set", "br0", "up");
    // Addresses of services are routed somewhere, or nothing would be sent to them.
    this.ip("link", "add", "svc0", "type", "bridge");
    this.ip("link", "set", "svc0", "up");
    this.ip("route", "add", "10.43.0.0/16", "dev", "svc0");
    this.in("sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward");
    const setting = "/proc/sys/net/bridge/bridge-nf-call-iptables";
    this.in("sh", "-c", `[ ! -e ${setting} ] || echo ${hidesPods ? 0 : 1} > ${setting}`);
  }

  in(...args: readonly string[]): string {
    return run("ip", "netns", "exec", this.name, ...args);
  }

  ip(...args: readonly string[]): string {
    return run("ip", "-n", this.name, ...args);
  }

  /** A pod that answers on TCP port 8080 and UDP port 5300 with its number and the client's address. */
  addPod(number: number): void {
    const name = `${this.name}-${number}`;
    this.pods.push(name);
    run("ip", "netns", "add", name);
    this.ip("link", "add", `v${number}`, "type", "veth", "peer", "name", "eth0", "netns", name);
    this.ip("link", "set", `v${number}`, "master", "br0", "up");
    // As the pod network of `kubelet up` has it (hairpinMode): what comes from a pod may go back to it.
    this.ip("link", "set", `v${number}`, "type", "bridge_slave", "hairpin", "on");
    for (const args of [
      ["addr", "add", `10.88.0.${number}/24`, "dev", "eth0"],
      ["link", "set", "eth0", "up"],
      ["link", "set", "lo", "up"],
      ["route", "add", "default", "via", "10.88.0.1"],
    ]) {
      run("ip", "-n", name, ...args);
    }
    this.start(name, process.execPath, "-e", SERVER, String(number));
  }

  private start(namespace: string, ...command: readonly string[]): void {
    this.children.push(spawn("ip", ["netns", "exec", namespace, ...command], { stdio: "ignore" }));
  }

  /** What a client hears from an address and port; empty when it is refused. */
  ask(client: "node" | number, address: string, port: number): { answer: string; isQuick: boolean } {
    const namespace = client === "node" ? this.name : `${this.name}-${client}`;
    const began = performance.now();
    const { stdout } = spawnSync(
      "ip",
      ["netns", "exec", namespace, "busybox", "nc", "-w", "10", address, String(port)],
      { encoding: "utf8", input: "" },
    );
    return { answer: stdout.trim(), isQuick: performance.now() - began < 2000 };
  }

  get runner() {
    return {
      exec: (file: string, args: readonly string[], options: Parameters<LinuxHost["exec"]>[2]) =>
        host.exec("ip", ["netns", "exec", this.name, file, ...args], options),
    };
  }

  table(): NftTable {
    return new NftTable(this.runner, this.options);
  }

  async close(): Promise<void> {
    for (const child of this.children) child.kill("SIGKILL");
    for (const name of this.pods) run("ip", "netns", "delete", name);
    run("ip", "netns", "delete", this.name);
  }
}

forwardingSuite("nftables", async () => {
  const node = new Node();
  return {
    table: node.table(),
    restarted: () => node.table(),
    flush: async () => void node.in("nft", "flush", "ruleset"),
    close: () => node.close(),
  };
});

function web(more: Partial<Forwarding> = {}): Forwarding {
  const targets = [2, 3].map((number) => ({ ip: `10.88.0.${number}`, port: 8080 }));
  return { key: "web", protocol: "tcp", addresses: ["10.43.0.5"], port: 80, nodePort: 30_080, targets, ...more };
}

for (const hidesPods of [false, true]) {
  describe(`packets, with frames between pods ${hidesPods ? "hidden from" : "seen by"} netfilter`, () => {
    const node = new Node({ hidesPods });
    const table = node.table();

    before(async () => {
      for (const number of [2, 3, 4]) node.addPod(number);
      await table.replace([web()], signal);
      await until("the pods answer", () =>
        [2, 3, 4].every((n) => node.ask("node", `10.88.0.${n}`, 8080).answer !== ""),
      );
    });
    after(() => node.close());

    const pods = (answers: readonly string[]): string[] => [...new Set(answers.map((one) => one.slice(0, 1)))].sort();
    const many = (client: "node" | number, address: string, port: number): string[] =>
      Array.from({ length: 16 }, () => node.ask(client, address, port).answer);

    it("a pod and the node reach every target through the service's address", () => {
      assert.deepEqual(pods(many(4, "10.43.0.5", 80)), ["2", "3"]);
      assert.deepEqual(pods(many("node", "10.43.0.5", 80)), ["2", "3"]);
    });

    it("the client's address is seen where the way back allows it", () => {
      const client = node.ask(4, "10.43.0.5", 80).answer.split(/[ :]/)[1];
      assert.equal(client, hidesPods ? "10.88.0.1" : "10.88.0.4");
    });

    it("a node port answers on the node's addresses", () => {
      assert.deepEqual(pods(many("node", "192.0.2.10", 30_080)), ["2", "3"]);
      assert.deepEqual(pods(many(4, "10.88.0.1", 30_080)), ["2", "3"]);
    });

    it("a pod reaches itself through its service", () => {
      assert.deepEqual(pods(many(2, "10.43.0.5", 80)), ["2", "3"]);
    });

    /** The quickest of a few: a busy machine may hold up one of them. */
    const refusal = (...asked: Parameters<Node["ask"]>): ReturnType<Node["ask"]> => {
      let found = node.ask(...asked);
      for (let turn = 1; turn < 3 && found.answer === "" && !found.isQuick; turn++) found = node.ask(...asked);
      return found;
    };

    it("what has no service or no endpoints is refused at once", async () => {
      await table.update(
        { set: [web({ key: "none", addresses: ["10.43.0.6"], nodePort: 30_081, targets: [] })], remove: [] },
        signal,
      );
      for (const client of ["node", 4] as const) {
        for (const [address, port] of [
          ["10.43.0.6", 80],
          ["10.43.0.5", 81],
          ["10.43.7.7", 80],
        ] as const) {
          assert.deepEqual(refusal(client, address, port), { answer: "", isQuick: true }, `${client} ${address}`);
        }
      }
    });

    it("a client stays with its target, also when others come and go and after the agent's restart", async () => {
      const sticky = web({ key: "sticky", addresses: ["10.43.0.7"], nodePort: 30_082, affinitySeconds: 60 });
      await table.update({ set: [sticky], remove: [] }, signal);
      const [chosen = "", ...others] = pods(many(4, "10.43.0.7", 80));
      assert.deepEqual(others, []);
      const third = { ...sticky, targets: [...sticky.targets, { ip: "10.88.0.4", port: 8080 }] };
      await table.update({ set: [third], remove: [] }, signal);
      assert.deepEqual(pods(many(4, "10.43.0.7", 80)), [chosen]);
      await node.table().replace([web(), sticky], signal);
      assert.deepEqual(pods(many(4, "10.43.0.7", 80)), [chosen]);
      await table.replace([web()], signal);
    });

    it("datagrams of a removed target go to another once its flows are forgotten", async () => {
      const targets = [2, 3].map((number) => ({ ip: `10.88.0.${number}`, port: 5300 }));
      const names = { ...web({ key: "dns", addresses: ["10.43.0.53"], port: 53, protocol: "udp" }) };
      const { nodePort: _none, ...dns } = names;
      await table.update({ set: [{ ...dns, targets: targets.slice(0, 1) }], remove: [] }, signal);
      const client = [process.execPath, "-e", DATAGRAM_CLIENT, "10.43.0.53", "53"];
      const ask = (): string =>
        spawnSync("ip", ["netns", "exec", `${node.name}-4`, ...client], { encoding: "utf8" }).stdout.trim();
      assert.equal(ask(), "2");
      await table.update({ set: [{ ...dns, targets: targets.slice(1) }], remove: [] }, signal);
      const [target] = targets;
      assert.ok(target);
      const conntrack = new Conntrack(node.runner);
      await conntrack.forget({ address: "10.43.0.53", port: 53, target }, signal);
      assert.equal(ask(), "3");
      await conntrack.forget({ address: "10.43.0.99", port: 53 }, signal);
    });
  });
}
