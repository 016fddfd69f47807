import assert from "node:assert/strict";
import type { SrvRecord } from "node:dns";
import { Resolver } from "node:dns/promises";
import { test } from "node:test";
import { DnsListener } from "../../adapters/net/dns-listener.ts";
import { DnsUpstream } from "../../adapters/net/dns-upstream.ts";
import { manyListeners } from "../../lib/abort.ts";
import { SystemClock } from "../../lib/clock.ts";
import type { EndpointSlice, Service, ServiceSpec } from "../../model/generated/types.ts";
import { encodeQuery, TYPE, udpLimit } from "./message.ts";
import { DnsResolver, type Upstream } from "./resolver.ts";
import { Zone } from "./zone.ts";

function service(key: string, spec: ServiceSpec): Service {
  const [namespace = "", name = ""] = key.split("/");
  return { metadata: { name, namespace }, spec };
}

function slice(ports: EndpointSlice["ports"], endpoints: EndpointSlice["endpoints"]): EndpointSlice {
  return { metadata: { name: "s" }, addressType: "IPv4", ports: ports ?? [], endpoints: endpoints ?? [] };
}

const PORTS = [{ name: "http", port: 80, protocol: "TCP" }];
const many = Array.from({ length: 200 }, (_, index) => ({ addresses: [`10.88.1.${index}`] }));
const SERVICES = new Map([
  ["shop/web", service("shop/web", { clusterIP: "10.43.0.5", ports: PORTS })],
  ["shop/db", service("shop/db", { clusterIP: "None", ports: PORTS })],
  ["shop/many", service("shop/many", { clusterIP: "None" })],
  ["shop/odd", service("shop/odd", { clusterIP: "None" })],
  ["shop/out", service("shop/out", { type: "ExternalName", externalName: "example.org" })],
  ["shop/inner", service("shop/inner", { type: "ExternalName", externalName: "web.shop.svc.cluster.local." })],
  ["shop/wide", service("shop/wide", { type: "ExternalName", externalName: `${"a".repeat(200)}.org` })],
  ["shop/loop", service("shop/loop", { type: "ExternalName", externalName: "loop.shop.svc.cluster.local" })],
]);
const SLICES = new Map([
  [
    "shop/db",
    [
      slice(
        [{ name: "http", port: 5432, protocol: "TCP" }],
        [
          { addresses: ["10.88.0.2"], hostname: "db-0" },
          { addresses: ["10.88.0.3"], conditions: { ready: true } },
          { addresses: ["10.88.0.4"], conditions: { ready: false } },
        ],
      ),
    ],
  ],
  ["shop/many", [slice([], many)]],
  ["shop/odd", [slice([], [{ addresses: ["10.88.2.7"], hostname: "not.a_label" }])]],
]);

const book = {
  get all() {
    return SERVICES.values();
  },
  get: (key: string) => SERVICES.get(key),
  endpoints: (key: string) => SLICES.get(key) ?? [],
};

const zone = new Zone(book, {
  domain: "cluster.local",
  address: "10.43.0.10",
  isOwn: (ip) => ip.startsWith("10.43.") || ip.startsWith("10.88."),
});
const { signal } = manyListeners();
const nobody: Upstream = { ask: async () => undefined };

/** A real client against a real server on loopback. */
async function client(upstream: Upstream = nobody) {
  const resolver = new DnsResolver({ zone, upstream, random: () => 0 });
  const listener = await DnsListener.open({ host: "127.0.0.1", port: 0 }, (message, how) =>
    resolver.respond(message, how),
  );
  const made = new Resolver({ timeout: 2000, tries: 1 });
  made.setServers([`127.0.0.1:${listener.port}`]);
  return { ask: made, listener };
}

async function withClient(body: (ask: Resolver) => Promise<void>, upstream?: Upstream): Promise<void> {
  const { ask, listener } = await client(upstream);
  try {
    await body(ask);
  } finally {
    ask.cancel();
    await listener.close();
  }
}

test("names of services and endpoints are answered as Kubernetes specifies", () =>
  withClient(async (ask) => {
    assert.deepEqual(await ask.resolve4("web.shop.svc.cluster.local"), ["10.43.0.5"]);
    assert.deepEqual(await ask.resolve4("WEB.Shop.svc.Cluster.local"), ["10.43.0.5"]);
    assert.deepEqual(await ask.resolve4("db.shop.svc.cluster.local"), ["10.88.0.2", "10.88.0.3"]);
    assert.deepEqual(await ask.resolve4("db-0.db.shop.svc.cluster.local"), ["10.88.0.2"]);
    assert.deepEqual(await ask.resolve4("10-88-0-3.db.shop.svc.cluster.local"), ["10.88.0.3"]);
    assert.deepEqual(await ask.resolve4("1-2-3-4.shop.pod.cluster.local"), ["1.2.3.4"]);
    assert.deepEqual(await ask.resolve4("ns.dns.cluster.local"), ["10.43.0.10"]);
    assert.deepEqual(await ask.resolveTxt("dns-version.cluster.local"), [["1.1.0"]]);
    assert.equal((await ask.resolveSoa("cluster.local")).nsname, "ns.dns.cluster.local");
  }));

test("SRV records name port and host of each endpoint", () =>
  withClient(async (ask) => {
    // Newer releases of Node add the type.
    const srv = async (name: string): Promise<SrvRecord[]> =>
      (await ask.resolveSrv(name)).map(({ name: host, port, priority, weight }) => ({
        name: host,
        port,
        priority,
        weight,
      }));
    assert.deepEqual(await srv("_http._tcp.web.shop.svc.cluster.local"), [
      { name: "web.shop.svc.cluster.local", port: 80, priority: 0, weight: 100 },
    ]);
    assert.deepEqual(await srv("_http._tcp.db.shop.svc.cluster.local"), [
      { name: "db-0.db.shop.svc.cluster.local", port: 5432, priority: 0, weight: 50 },
      { name: "10-88-0-3.db.shop.svc.cluster.local", port: 5432, priority: 0, weight: 50 },
    ]);
  }));

test("addresses have names", () =>
  withClient(async (ask) => {
    assert.deepEqual(await ask.reverse("10.43.0.5"), ["web.shop.svc.cluster.local"]);
    assert.deepEqual(await ask.reverse("10.88.0.2"), ["db-0.db.shop.svc.cluster.local"]);
    await assert.rejects(ask.reverse("10.43.9.9"), { code: "ENOTFOUND" });
  }));

const ABSENT = [
  { name: "nothing.shop.svc.cluster.local", code: "ENOTFOUND" },
  { name: "nothing.db.shop.svc.cluster.local", code: "ENOTFOUND" },
  { name: "10-88-0-4.db.shop.svc.cluster.local", code: "ENOTFOUND" },
  { name: "none.svc.cluster.local", code: "ENOTFOUND" },
  { name: "x.cluster.local", code: "ENOTFOUND" },
  { name: "1-2-3.shop.pod.cluster.local", code: "ENOTFOUND" },
  { name: "shop.svc.cluster.local", code: "ENODATA" },
  { name: "svc.cluster.local", code: "ENODATA" },
  { name: "shop.pod.cluster.local", code: "ENODATA" },
  { name: "pod.cluster.local", code: "ENODATA" },
  { name: "1-2-3-4.x.shop.pod.cluster.local", code: "ENOTFOUND" },
  { name: "_tcp.web.shop.svc.cluster.local", code: "ENODATA" },
  { name: "example.org", code: "ESERVFAIL" },
];
for (const { name, code } of ABSENT) {
  test(`${name} is answered with ${code}`, () => withClient((ask) => assert.rejects(ask.resolve4(name), { code })));
}

test("a name without addresses of the other family is there all the same", () =>
  withClient((ask) => assert.rejects(ask.resolve6("web.shop.svc.cluster.local"), { code: "ENODATA" })));

test("an answer that does not fit is cut, and given whole by TCP", () =>
  withClient(async (ask) => {
    assert.equal((await ask.resolve4("many.shop.svc.cluster.local")).length, 200);
  }));

test("an external name comes with the addresses that another server knows", async () => {
  const target = await client({ ask: async (query) => foreignAnswer(query) });
  try {
    assert.deepEqual(await target.ask.resolveCname("out.shop.svc.cluster.local"), ["example.org"]);
    assert.deepEqual(await target.ask.resolve4("out.shop.svc.cluster.local"), ["192.0.2.7"]);
    assert.deepEqual(await target.ask.resolve4("inner.shop.svc.cluster.local"), ["10.43.0.5"]);
    await assert.rejects(target.ask.resolve4("loop.shop.svc.cluster.local"), { code: "ESERVFAIL" });
  } finally {
    await target.listener.close();
  }
});

test("an external name whose servers do not answer is a failure, with the name", () =>
  withClient(async (ask) => {
    await assert.rejects(ask.resolve4("out.shop.svc.cluster.local"), { code: "ESERVFAIL" });
  }));

test("however the answer for an external name is cut, the client gets one", async () => {
  const query = encodeQuery({ id: 7, name: "out.shop.svc.cluster.local", type: TYPE.A });
  const whole = foreignAnswer(encodeQuery({ id: 0, name: "example.org", type: TYPE.A }));
  for (let length = 0; length <= whole.length; length++) {
    const upstream: Upstream = { ask: async () => whole.subarray(0, length) };
    const cut = new DnsResolver({ zone, upstream, random: () => 0 });
    const answer = await cut.respond(query, { signal, isTcp: false, client: "10.88.0.9" });
    assert.equal(rcode(answer), length === whole.length ? 0 : 2, `${length} bytes`);
    assert.equal(answer?.readUInt16BE(6), length === whole.length ? 2 : 1, "the name, and the address if it is there");
  }
});

test("an address of another length than its type has is left out", async () => {
  for (const type of [TYPE.A, TYPE.AAAA]) {
    const query = encodeQuery({ id: 7, name: "out.shop.svc.cluster.local", type });
    const foreign = foreignAnswer(encodeQuery({ id: 0, name: "example.org", type }));
    foreign.writeUInt16BE(TYPE.AAAA, foreign.length - 14);
    const wrong = new DnsResolver({ zone, upstream: { ask: async () => foreign }, random: () => 0 });
    const answer = await wrong.respond(query, { signal, isTcp: false, client: "10.88.0.9" });
    assert.deepEqual([rcode(answer), answer?.readUInt16BE(6)], [0, 1]);
  }
});

test("an endpoint with a host name that is none goes by its address", () =>
  withClient(async (ask) => {
    assert.deepEqual(await ask.resolve4("10-88-2-7.odd.shop.svc.cluster.local"), ["10.88.2.7"]);
    assert.deepEqual(await ask.reverse("10.88.2.7"), ["10-88-2-7.odd.shop.svc.cluster.local"]);
  }));

/** The query with one address in the answer. */
function foreignAnswer(query: Buffer): Buffer {
  const head = Buffer.from(query.subarray(0, 12));
  head.writeUInt16BE(0x8180, 2);
  head.writeUInt16BE(1, 6);
  head.writeUInt16BE(0, 10);
  const end = query.indexOf(0, 12) + 5;
  const record = Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 9, 0, 4, 192, 0, 2, 7]);
  return Buffer.concat([head, query.subarray(12, end), record]);
}

test("other names go to the node's servers, by the way that the client came, and the next one is asked for a dead one", async () => {
  const other = await DnsListener.open({ host: "127.0.0.2", port: 0 }, async (query) => foreignAnswer(query));
  const { writeFile, mkdtemp, rm } = await import("node:fs/promises");
  const dir = await mkdtemp("/tmp/dns-");
  // The second is this server, the third answers.
  await writeFile(`${dir}/resolv.conf`, "nameserver 127.0.0.3\nnameserver 10.43.0.10\nnameserver 127.0.0.2\n");
  const options = {
    file: () => `${dir}/resolv.conf`,
    isExcluded: (ip: string) => ip === "10.43.0.10",
    port: other.port,
  };
  const upstream = new DnsUpstream({ clock: new SystemClock() }, options);
  try {
    await withClient(async (ask) => assert.deepEqual(await ask.resolve4("example.org"), ["192.0.2.7"]), upstream);
    const query = encodeQuery({ id: 7, name: "example.org", type: TYPE.A });
    const resolver = new DnsResolver({ zone, upstream, random: () => 0 });
    const answer = await resolver.respond(query, { signal, isTcp: true, client: "10.88.0.9" });
    assert.equal(answer?.readUInt16BE(0), 7);
  } finally {
    await other.close();
    await rm(dir, { recursive: true });
  }
});

const resolver = new DnsResolver({ zone, upstream: nobody, random: () => 0 });

function rcode(answer: Buffer | undefined): number | undefined {
  return answer === undefined ? undefined : answer.readUInt16BE(2) & 0xf;
}

test("what breaks the rules is refused or not answered", async () => {
  const query = encodeQuery({ id: 1, name: "web.shop.svc.cluster.local", type: TYPE.A });
  const changed = (at: number, value: number): Buffer => {
    const copy = Buffer.from(query);
    copy.writeUInt16BE(value, at);
    return copy;
  };
  const ask = async (bytes: Buffer) =>
    rcode(await resolver.respond(bytes, { signal, isTcp: false, client: "10.88.0.9" }));
  assert.equal(await ask(query), 0);
  assert.equal(await ask(query.subarray(0, 11)), undefined);
  assert.equal(await ask(changed(2, 0x8000)), undefined, "an answer");
  assert.equal(await ask(changed(2, 0x2800)), 4, "another operation");
  assert.equal(await ask(changed(4, 2)), 1, "two questions");
  assert.equal(await ask(changed(4, 0)), 1, "no question");
  assert.equal(await ask(query.subarray(0, 20)), 1, "cut");
  assert.equal(await ask(changed(query.length - 2, 3)), 5, "another class");
  const pointer = Buffer.concat([query.subarray(0, 12), Buffer.from([0xc0, 12, 0, 1, 0, 1])]);
  assert.equal(await ask(pointer), 1, "a name that is its own end");
});

/** A message of 64 KB: each of its records points to one name of a hundred labels. */
function crowdedMessage(flags: number): Buffer {
  const name = Buffer.concat([Buffer.from("\x01a".repeat(126), "latin1"), Buffer.from([0, 0, 1, 0, 1])]);
  const record = Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 192, 0, 2, 7]);
  const count = Math.floor((65_535 - 12 - name.length) / record.length);
  const head = Buffer.alloc(12);
  for (const [index, word] of [1, flags, 1, count].entries()) head.writeUInt16BE(word, index * 2);
  return Buffer.concat([head, name, ...Array<Buffer>(count).fill(record)]);
}

/** Counts the labels that are read of a message. */
function counted(message: Buffer): { readonly message: Buffer; labels: number } {
  const count = { message, labels: 0 };
  const read = message.toString.bind(message);
  message.toString = (...args) => {
    count.labels++;
    return read(...args);
  };
  return count;
}

test("of the records of a query no name is read: thousands may point to a long one", async () => {
  const query = counted(crowdedMessage(0));
  await resolver.respond(query.message, { signal, isTcp: true, client: "10.88.0.9" });
  assert.equal(query.labels, 126);
});

test("of the answer of another server a bounded number of names is read", async () => {
  const foreign = counted(crowdedMessage(0x8000));
  const other = new DnsResolver({ zone, upstream: { ask: async () => foreign.message }, random: () => 0 });
  const query = encodeQuery({ id: 1, name: "out.shop.svc.cluster.local", type: TYPE.A });
  const answer = await other.respond(query, { signal, isTcp: true, client: "10.88.0.9" });
  assert.equal(answer?.readUInt16BE(6), 101, "the alias and a hundred addresses");
  assert.equal(foreign.labels, 100 * 126);
});

test("a refusal of what could not be read has no question", async () => {
  const query = encodeQuery({ id: 7, name: "web.shop.svc.cluster.local", type: TYPE.A });
  const answer = await resolver.respond(query.subarray(0, 20), { signal, isTcp: false, client: "10.0.0.9" });
  assert.equal(answer?.length, 12);
  assert.deepEqual([answer?.readUInt16BE(0), answer?.readUInt16BE(4), rcode(answer)], [7, 0, 1]);
});

for (const { bytes, want } of [
  { bytes: 11, want: 2 },
  { bytes: 12, want: 0 },
]) {
  test(`${bytes} bytes of another server are ${want === 0 ? "passed on" : "no answer"}`, async () => {
    const other = new DnsResolver({ zone, random: () => 0, upstream: { ask: async () => Buffer.alloc(bytes) } });
    const query = encodeQuery({ id: 7, name: "example.org", type: TYPE.A });
    const answer = await other.respond(query, { signal, isTcp: false, client: "10.0.0.9" });
    assert.deepEqual([answer?.readUInt16BE(0), rcode(answer)], [7, want]);
  });
}

test("EDNS0: its size counts up to a limit, an unknown version is refused", async () => {
  const plain = encodeQuery({ id: 1, name: "many.shop.svc.cluster.local", type: TYPE.A });
  const withOptions = (bytes: number, version: number): Buffer => {
    const head = Buffer.from(plain);
    head.writeUInt16BE(1, 10);
    return Buffer.concat([head, Buffer.from([0, 0, 41, bytes >> 8, bytes & 255, 0, version, 0, 0, 0, 0])]);
  };
  const short = await resolver.respond(plain, { signal, isTcp: false, client: "10.88.0.9" });
  assert.ok(short !== undefined && short.length <= 512 && (short.readUInt16BE(2) & 0x200) !== 0);
  const long = await resolver.respond(withOptions(65_000, 0), { signal, isTcp: false, client: "10.88.0.9" });
  assert.ok(long !== undefined && long.length <= 1232 && (long.readUInt16BE(2) & 0x200) !== 0);
  const unknown = await resolver.respond(withOptions(1232, 1), { signal, isTcp: false, client: "10.88.0.9" });
  assert.equal(unknown?.[unknown.length - 6], 1, "the upper bits of BADVERS");
});

test("no packet makes it throw, and every answer is one", async () => {
  let state = 20_261_117;
  const next = (below: number): number => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    return Math.floor((state / 2 ** 31) * below);
  };
  const names = ["web.shop.svc.cluster.local", "_http._tcp.db.shop.svc.cluster.local", "5.0.43.10.in-addr.arpa", "a.b"];
  for (let round = 0; round < 20_000; round++) {
    const type = [1, 12, 28, 33, 255][next(5)] ?? 1;
    const bytes = encodeQuery({ id: next(65_536), name: names[next(names.length)] ?? "", type });
    for (let flips = next(6); flips > 0; flips--) bytes[next(bytes.length)] = next(256);
    const cut = next(4) === 0 ? bytes.subarray(0, next(bytes.length)) : bytes;
    const more =
      next(4) === 0 ? Buffer.concat([cut, Buffer.from(Array.from({ length: next(40) }, () => next(256)))]) : cut;
    const answer = await resolver.respond(more, { signal, isTcp: next(2) === 0, client: "10.88.0.9" });
    if (answer === undefined) continue;
    assert.ok(answer.length >= 12 && (answer[2] ?? 0) >= 0x80);
    assert.equal(answer.readUInt16BE(0), more.readUInt16BE(0));
  }
});

test("a name with a label that DNS cannot hold is not sent", () =>
  withClient(async (ask) => {
    await assert.rejects(ask.resolve4("wide.shop.svc.cluster.local"), { code: "ESERVFAIL" });
    await assert.rejects(ask.resolveCname("wide.shop.svc.cluster.local"), { code: "ESERVFAIL" });
  }));

test("a pod whose queries wait for a slow server does not keep another from its answer", async () => {
  let asked = 0;
  const held: (() => void)[] = [];
  const slow: Upstream = {
    ask: (query) => {
      asked++;
      return new Promise((resolve) => {
        held.push(() => resolve(Buffer.from(query)));
      });
    },
  };
  const fair = new DnsResolver({ zone, upstream: slow, random: () => 0 });
  const query = encodeQuery({ id: 3, name: "example.org", type: TYPE.A });
  const from = (client: string) => fair.respond(query, { signal, isTcp: false, client });
  const greedy = Array.from({ length: 300 }, () => from("10.88.0.2"));
  const before = asked;
  const other = from("10.88.0.3");
  assert.equal(asked, before + 1, `${before} queries of one client wait`);
  for (const answer of held) answer();
  assert.equal(rcode(await other), 0);
  const codes = (await Promise.all(greedy)).map(rcode);
  assert.equal(codes.filter((code) => code === 2).length, 300 - before, "the others are told to try again");
});

for (const { name, want } of [
  { name: "WEB.Shop.svc.Cluster.local", want: "0 10.43.0.5" },
  { name: "web.shop.svc.other-cluster.local", want: "elsewhere" },
  { name: "evilcluster.local", want: "elsewhere" },
  { name: "out.shop.svc.cluster.local", want: "alias" },
  { name: "below.out.shop.svc.cluster.local", want: "3 " },
]) {
  test(`the zone has ${want} for ${name}`, () => {
    const result = zone.resolve({ name, type: 1, class: 1 });
    if (result.kind !== "answer") return assert.equal(result.kind, want);
    const ips = result.answer.answers.map(({ data }) => (data.type === "A" ? data.ip : data.type));
    assert.equal(`${result.answer.rcode} ${ips.join()}`, want);
  });
}

test("a query that was answered leaves its place to others, however many there were", async () => {
  const upstream: Upstream = { ask: async (query) => Buffer.from(query) };
  const resolver = new DnsResolver({ zone, upstream, random: () => 0 });
  const query = encodeQuery({ id: 7, name: "example.org", type: 1 });
  for (let at = 0; at < 1000; at++) {
    const answer = await resolver.respond(query, { signal, isTcp: false, client: `10.88.0.${at % 8}` });
    assert.equal((answer?.readUInt16BE(2) ?? 0) & 0xf, 0, `query ${at}`);
  }
});

for (const { udpBytes, want } of [
  { udpBytes: undefined, want: 512 },
  { udpBytes: 0, want: 512 },
  { udpBytes: 1000, want: 1000 },
  { udpBytes: 4096, want: 1232 },
]) {
  test(`a client that takes ${udpBytes} bytes by UDP gets at most ${want}`, () => {
    const query = { id: 1, opcode: 0, isRecursive: true, name: "a", type: 1, class: 1 };
    assert.equal(udpLimit({ ...query, ...(udpBytes !== undefined && { edns: { version: 0, udpBytes } }) }), want);
  });
}
