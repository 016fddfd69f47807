import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { parse } from "yaml";
import { testApiServer } from "../../../test/support/local-api.ts";
import { bareRequest, type RouteAnswer } from "../../adapters/net/http-route.ts";
import { FakeClock } from "../../lib/clock.ts";

const ADMIN = { name: "admin", groups: ["system:masters"] };
const MAPS = "/api/v1/namespaces/lists/configmaps";
/** 600 KB of objects. */
const OBJECTS = 60;
const FILL = `${"ä".repeat(2500)}${"y".repeat(5000)}`;

interface Listed {
  readonly kind: string;
  readonly items?: readonly {
    readonly metadata: { readonly name: string };
    readonly data?: { readonly fill: string };
  }[];
  readonly rows?: readonly { readonly object: { readonly metadata: { readonly name: string } } }[];
}

async function bench(t: TestContext, fill = FILL) {
  const server = await testApiServer(new FakeClock());
  t.after(() => server.close());
  const ask = (method: string, path: string, { body = {}, accept = "" } = {}): Promise<RouteAnswer> => {
    const readBody = async (): Promise<Buffer> => Buffer.from(JSON.stringify(body));
    return server.handle(bareRequest(method, path, { headers: { accept }, readBody }), ADMIN);
  };
  await ask("POST", "/api/v1/namespaces", { body: { metadata: { name: "lists" } } });
  const names = Array.from({ length: OBJECTS }, (_, index) => `map-${String(index).padStart(3, "0")}`);
  for (const name of names) {
    const labels = { parity: Number(name.slice(-1)) % 2 === 0 ? "even" : "odd" };
    await ask("POST", MAPS, { body: { metadata: { name, labels }, data: { fill } } });
  }
  return { ask, names };
}

/** Runs some work, and counts how often others had their turn meanwhile. */
async function counted<T>(work: () => Promise<T>): Promise<{ readonly result: T; readonly turns: number }> {
  let turns = 0;
  let isOver = false;
  const count = (): void => {
    turns++;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  const result = await work();
  isOver = true;
  return { result, turns };
}

/** The whole body and its longest piece. */
async function read({ body }: RouteAnswer): Promise<{ text: string; longest: number }> {
  assert.ok(typeof body === "object" && Symbol.asyncIterator in body, "a long list is not made as a whole");
  const chunks: Buffer[] = [];
  for await (const chunk of body) chunks.push(Buffer.from(chunk));
  const longest = Math.max(...chunks.map((chunk) => chunk.length));
  return { text: Buffer.concat(chunks).toString("utf8"), longest };
}

const TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io";
const forms: readonly (readonly [name: string, accept: string, kind: string, pieces: number])[] = [
  ["objects", "application/json", "ConfigMapList", 4],
  ["rows of a table with their objects", TABLE, "Table", 4],
  ["YAML", "application/yaml", "ConfigMapList", 30],
];
for (const [name, accept, kind, pieces] of forms) {
  test(`a long list of ${name} comes in pieces, with turns for others in between`, async (t) => {
    const { ask, names } = await bench(t);
    const answer = await ask("GET", `${MAPS}?includeObject=Object`, { accept });
    const { result, turns } = await counted(() => read(answer));
    const { text, longest } = result;
    const list = (accept === "application/yaml" ? parse(text) : JSON.parse(text)) as Listed;
    assert.equal(list.kind, kind);
    const found = list.items ?? list.rows?.map(({ object }) => object) ?? [];
    assert.deepEqual(
      found.map(({ metadata }) => metadata.name),
      ["kube-root-ca.crt", ...names].filter((one) => one !== "kube-root-ca.crt" || found.length > names.length),
    );
    if (list.items) assert.equal(list.items.at(-1)?.data?.fill, FILL);
    assert.ok(longest <= 128 * 1024, `a piece of ${longest} bytes`);
    assert.ok(turns >= pieces, `${turns} turns`);
  });
}

test("a short list is sent as a whole, and an object that is longer than a piece comes as it is", async (t) => {
  const { ask } = await bench(t, "x");
  const short = await ask("GET", MAPS);
  assert.equal(typeof short.body, "string");
  const fill = "z".repeat(300_000);
  await ask("POST", MAPS, { body: { metadata: { name: "map-big" }, data: { fill } } });
  const { text } = await read(await ask("GET", MAPS));
  assert.equal((JSON.parse(text) as Listed).items?.at(-1)?.data?.fill, fill);
});

test("a selection over many objects lets others run, and has all of them", async (t) => {
  const { ask, names } = await bench(t, "w".repeat(50_000));
  const { result: answer, turns } = await counted(() => ask("GET", `${MAPS}?labelSelector=parity%3Dodd`));
  assert.ok(turns >= 5, `${turns} turns`);
  const { text } = await read(answer);
  const odd = names.filter((name) => Number(name.slice(-1)) % 2 === 1);
  assert.deepEqual(
    (JSON.parse(text) as Listed).items?.map(({ metadata }) => metadata.name),
    odd,
  );
  const page = JSON.parse(String((await ask("GET", `${MAPS}?labelSelector=parity%3Dodd&limit=2`)).body)) as Listed & {
    readonly metadata: { readonly continue?: string };
  };
  assert.deepEqual(
    page.items?.map(({ metadata }) => metadata.name),
    odd.slice(0, 2),
  );
  assert.ok(page.metadata.continue);
});
