import assert from "node:assert/strict";
import { test } from "node:test";
import { ElementLedger } from "./element-ledger.ts";
import type { Forwarding } from "./port.ts";
import { TableImage } from "./table-image.ts";

const OPTIONS = { name: "t", serviceSubnet: "10.43.0.0/16", podSubnet: "10.88.0.0/16", bridge: "b", hidesPods: true };
const forwarding = (more: Partial<Forwarding> = {}): Forwarding => ({
  key: "a",
  protocol: "tcp",
  addresses: ["10.43.0.5"],
  port: 80,
  targets: [{ ip: "10.88.0.2", port: 8080 }],
  ...more,
});
/** The words of each line of a script that tell what it does to what. */
const steps = (script: string): string[] =>
  script
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => line.replaceAll(/ ip t /g, " ").replaceAll(/[0-9a-f]{12}/g, "ID"));

test("an element that two want is the first one's, and the second one's when that one leaves", () => {
  const ledger = new ElementLedger();
  const element = (value: string) => ({ collection: "c", key: "k", value });
  assert.deepEqual(ledger.change("one", [], [element("1")]), [
    { collection: "c", key: "k", before: undefined, after: "1" },
  ]);
  assert.deepEqual(ledger.change("two", [], [element("2")]), []);
  assert.deepEqual(ledger.all, [element("1")]);
  assert.deepEqual(ledger.change("one", [element("1")], []), [{ collection: "c", key: "k", before: "1", after: "2" }]);
  assert.deepEqual(ledger.change("two", [element("2")], []), [
    { collection: "c", key: "k", before: "2", after: undefined },
  ]);
  assert.deepEqual(ledger.all, []);
});

test("an element that the second one gives up does not take it from the first", () => {
  const ledger = new ElementLedger();
  const element = { collection: "c", key: "k", value: "" };
  ledger.change("one", [], [element]);
  ledger.change("two", [], [element]);
  assert.deepEqual(ledger.change("two", [element], []), []);
  assert.deepEqual(ledger.all, [element]);
});

test("a new forwarding is made before it can be reached", () => {
  const image = new TableImage(OPTIONS);
  assert.deepEqual(steps(image.change({ set: [forwarding()], remove: [] })), [
    "add table ip t",
    "add chain svc-ID",
    "flush chain svc-ID",
    "add rule svc-ID meta l4proto tcp dnat to numgen random mod 1 map { 0 : 10.88.0.2 . 8080 }",
    "add element service-ips { 10.43.0.5 . tcp . 80 : goto svc-ID }",
    "add element hairpin { 10.88.0.2 . 10.88.0.2 }",
  ]);
});

test("a forwarding that goes is out of reach before it is removed", () => {
  const image = TableImage.of(OPTIONS, [forwarding()]);
  assert.deepEqual(steps(image.change({ set: [], remove: ["a"] })), [
    "add table ip t",
    "delete element service-ips { 10.43.0.5 . tcp . 80 }",
    "delete element hairpin { 10.88.0.2 . 10.88.0.2 }",
    "flush chain svc-ID",
    "delete chain svc-ID",
  ]);
  assert.deepEqual(image.listing.elements, new Set());
  assert.equal(image.change({ set: [], remove: ["a"] }), "");
});

test("what does not change is not written, and another target only its chain and itself", () => {
  const image = TableImage.of(OPTIONS, [forwarding()]);
  assert.equal(image.change({ set: [forwarding()], remove: [] }), "");
  const other = { ip: "10.88.0.3", port: 8080 };
  assert.deepEqual(steps(image.change({ set: [forwarding({ targets: [other] })], remove: [] })), [
    "add table ip t",
    "delete element hairpin { 10.88.0.2 . 10.88.0.2 }",
    "add chain svc-ID",
    "flush chain svc-ID",
    "add rule svc-ID meta l4proto tcp dnat to numgen random mod 1 map { 0 : 10.88.0.3 . 8080 }",
    "add element hairpin { 10.88.0.3 . 10.88.0.3 }",
  ]);
});

test("without targets nothing is forwarded, and clients that come back keep to their target", () => {
  const image = TableImage.of(OPTIONS, [forwarding({ targets: [] })]);
  assert.equal(image.listing.elements.size, 0);
  const sticky = forwarding({ affinitySeconds: 60, nodePort: 30_080 });
  assert.deepEqual(steps(image.change({ set: [sticky], remove: [] })), [
    "add table ip t",
    "add set aff-ID-ID { type ipv4_addr; flags dynamic, timeout; timeout 60s; }",
    "add chain ep-ID-ID",
    "flush chain ep-ID-ID",
    "add chain svc-ID",
    "flush chain svc-ID",
    "add rule ep-ID-ID update @aff-ID-ID { ip saddr timeout 60s }",
    "add rule ep-ID-ID meta l4proto tcp dnat to 10.88.0.2:8080",
    "add rule svc-ID ip saddr @aff-ID-ID goto ep-ID-ID",
    "add rule svc-ID numgen random mod 1 vmap { 0 : goto ep-ID-ID }",
    "add element service-ips { 10.43.0.5 . tcp . 80 : goto svc-ID }",
    "add element node-ports { tcp . 30080 : goto svc-ID }",
    "add element hairpin { 10.88.0.2 . 10.88.0.2 }",
  ]);
});

test("two targets of one address share its element, and a set that is there stays with its clients", () => {
  const targets = [8080, 8081].map((port) => ({ ip: "10.88.0.2", port }));
  const sticky = forwarding({ affinitySeconds: 60, targets });
  const image = new TableImage(OPTIONS);
  const hairpins = steps(image.change({ set: [sticky], remove: [] })).filter((line) => line.includes("hairpin"));
  assert.deepEqual(hairpins, ["add element hairpin { 10.88.0.2 . 10.88.0.2 }"]);
  assert.equal(image.change({ set: [sticky], remove: [] }), "");
  const less = image.change({ set: [{ ...sticky, targets: targets.slice(1) }], remove: [] });
  assert.deepEqual(
    steps(less).filter((line) => /^(add|delete) (set|element)/.test(line)),
    ["delete set aff-ID-ID"],
  );
});

test("a whole table removes what is there and not wanted, and nothing else", () => {
  const image = TableImage.of(OPTIONS, [forwarding({ affinitySeconds: 60 })]);
  const { chains, sets, elements } = image.listing;
  const there = { chains: new Map([...chains, ["svc-old", 1]]), sets: new Set([...sets, "aff-old"]), elements };
  const removed = steps(image.whole(there)).filter((line) => line.startsWith("delete"));
  assert.deepEqual(removed, ["delete chain svc-old", "delete set aff-old"]);
  assert.deepEqual(
    steps(image.whole(undefined)).filter((line) => line.startsWith("delete")),
    [],
  );
});
