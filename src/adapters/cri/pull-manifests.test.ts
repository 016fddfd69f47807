import assert from "node:assert/strict";
import { test } from "node:test";
import { Info } from "./generated/containerd-content.ts";
import { assignManifests } from "./pull-manifests.ts";

const digest = (letter: string): string => `sha256:${letter.repeat(64)}`;

/** A manifest with one part, `x` and its letter. */
function manifest(letter: string, created: number): Info {
  const labels = { "containerd.io/gc.ref.content.l.0": `x${letter}` };
  return Info.fromPartial({ digest: digest(letter), createdAt: new Date(created), labels });
}

function index(letter: string, of: string): Info {
  const labels = { "containerd.io/gc.ref.content.m.0": digest(of) };
  return Info.fromPartial({ digest: digest(letter), createdAt: new Date(0), labels });
}

interface Case {
  readonly name: string;
  /** Begin of each pull by the tag, or the letter of the digest behind `@`, of its image. */
  readonly pulls: Readonly<Record<string, number>>;
  readonly blobs: readonly Info[];
  /** Letters of manifests whose parts arrive for everybody. */
  readonly open?: string;
  /** Letters of manifests by the pull that is known to be of them. */
  readonly assigned?: Readonly<Record<string, string>>;
  /** Letters of manifests by pull, with a `?` if they are shared. */
  readonly want: Readonly<Record<string, string>>;
}

const [a, b] = [manifest("a", 50), manifest("b", 150)];
const cases: readonly Case[] = [
  { name: "nothing has arrived", pulls: { 1: 0 }, blobs: [], want: { 1: "" } },
  { name: "one pull, one manifest", pulls: { 1: 0 }, blobs: [a], want: { 1: "a" } },
  { name: "one pull, the newest manifest", pulls: { 1: 0 }, blobs: [a, b], want: { 1: "b" } },
  { name: "one pull, the manifest whose parts arrive", pulls: { 1: 0 }, blobs: [a, b], open: "a", want: { 1: "a" } },
  { name: "one pull, an old manifest", pulls: { 1: 100 }, blobs: [a], want: { 1: "" } },
  { name: "one pull, an old manifest whose parts arrive", pulls: { 1: 100 }, blobs: [a], open: "a", want: { 1: "a" } },
  { name: "an index is no manifest", pulls: { 1: 0 }, blobs: [index("d", "a")], want: { 1: "" } },
  { name: "two at once, one manifest", pulls: { 1: 0, 2: 0 }, blobs: [a], want: { 1: "a?", 2: "a?" } },
  { name: "two at once, two manifests", pulls: { 1: 0, 2: 0 }, blobs: [a, b], want: { 1: "ba?", 2: "ba?" } },
  { name: "one manifest before the second pull", pulls: { 1: 0, 2: 100 }, blobs: [a], want: { 1: "a", 2: "" } },
  { name: "each manifest in its time", pulls: { 1: 0, 2: 100 }, blobs: [a, b], want: { 1: "a", 2: "b" } },
  {
    name: "the order of the pulls does not matter",
    pulls: { 2: 100, 1: 0 },
    blobs: [b, a],
    open: "ab",
    want: { 1: "a", 2: "b" },
  },
  {
    name: "both manifests after the second pull",
    pulls: { 1: 0, 2: 40 },
    blobs: [a, b],
    want: { 1: "ba?", 2: "ba?" },
  },
  {
    name: "two tags of one manifest",
    pulls: { 1: 0, 2: 100 },
    blobs: [a],
    open: "a",
    want: { 1: "a", 2: "a?" },
  },
  {
    name: "what is assigned is not given again",
    pulls: { 1: 0, 2: 40 },
    blobs: [a, b],
    assigned: { 1: "a" },
    want: { 2: "b" },
  },
  {
    name: "three at once, one of them known",
    pulls: { 1: 0, 2: 0, 3: 0 },
    blobs: [a, b, manifest("c", 160)],
    assigned: { 2: "b" },
    want: { 1: "ca?", 3: "ca?" },
  },
  { name: "a digest names its manifest", pulls: { "@a": 0, 1: 0 }, blobs: [a, b], want: { "@a": "a", 1: "b" } },
  {
    name: "a digest names its index",
    pulls: { "@d": 0, "@b": 0 },
    blobs: [a, b, index("d", "a")],
    want: { "@d": "a", "@b": "b" },
  },
  { name: "a digest whose manifest is missing", pulls: { "@c": 0, 1: 0 }, blobs: [a], want: { "@c": "", 1: "a" } },
];

for (const { name, pulls, blobs, open = "", assigned = {}, want } of cases) {
  test(`manifests of pulls: ${name}`, () => {
    const running = Object.entries(pulls).map(([tag, since]) => {
      const suffix = tag.startsWith("@") ? `@${digest(tag.slice(1))}` : `:${tag}`;
      return { tag, pull: { image: `r.example.com/app${suffix}`, since } };
    });
    const known = running.filter(({ tag }) => tag in assigned);
    const found = assignManifests(
      running.map(({ pull }) => pull),
      {
        blobs,
        assigned: new Map(known.map(({ tag, pull }) => [pull, digest(assigned[tag] ?? "")])),
        isReceiving: (_pull, part) => open.includes(part.slice(1)),
      },
    );
    const shown = running.flatMap(({ tag, pull }) => {
      const one = found.get(pull);
      if (one === undefined) return [];
      const letters = one.manifests.map((info) => info.digest.slice(7, 8)).join("");
      return [[tag, `${letters}${one.isShared ? "?" : ""}`]];
    });
    assert.deepEqual(Object.fromEntries(shown), want);
  });
}
