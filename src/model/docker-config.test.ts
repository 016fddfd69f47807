import assert from "node:assert/strict";
import { test } from "node:test";
import { pullCredentials } from "./docker-config.ts";
import type { Secret } from "./generated/types.ts";

const base64 = (text: string): string => Buffer.from(text).toString("base64");
const modern = (auths: object): Secret => ({
  metadata: {},
  type: "kubernetes.io/dockerconfigjson",
  data: { ".dockerconfigjson": base64(JSON.stringify({ auths })) },
});
const old = (places: object): Secret => ({
  metadata: {},
  type: "kubernetes.io/dockercfg",
  data: { ".dockercfg": base64(JSON.stringify(places)) },
});
const ada = { auth: base64("ada:pass:word") };
const want = { username: "ada", password: "pass:word" };

const cases = [
  { name: "by host", image: "r.example.com/a/b:1", secrets: [modern({ "r.example.com": ada })], found: [want] },
  {
    name: "by host and port",
    image: "r.example.com:5000/a",
    secrets: [modern({ "r.example.com:5000": ada })],
    found: [want],
  },
  { name: "another port", image: "r.example.com:5000/a", secrets: [modern({ "r.example.com": ada })], found: [] },
  {
    name: "with a scheme and a version",
    image: "r.example.com/a",
    secrets: [modern({ "https://r.example.com/v2/": ada })],
    found: [want],
  },
  {
    name: "the old form",
    image: "r.example.com/a",
    secrets: [old({ "r.example.com": { username: "u", password: "p" } })],
    found: [{ username: "u", password: "p" }],
  },
  {
    name: "Docker's own registry",
    image: "busybox",
    secrets: [modern({ "https://index.docker.io/v1/": ada })],
    found: [want],
  },
  { name: "by path", image: "r.example.com/team/app", secrets: [modern({ "r.example.com/team": ada })], found: [want] },
  {
    name: "a path is a plain prefix, as in Kubernetes",
    image: "r.example.com/team-a/app",
    secrets: [modern({ "r.example.com/team": ada })],
    found: [want],
  },
  {
    name: "a path with a slash behind it is that path alone",
    image: "r.example.com/team-a/app",
    secrets: [modern({ "r.example.com/team/": ada })],
    found: [],
  },
  {
    name: "below a path with a slash behind it",
    image: "r.example.com/team/app",
    secrets: [modern({ "https://r.example.com/v1/team/": ada })],
    found: [want],
  },
  {
    name: "a host that only begins like Docker's own registry",
    image: "docker.io.example.com/a",
    secrets: [modern({ "index.docker.io.example.com": ada })],
    found: [],
  },
  {
    name: "field names in any case",
    image: "r.example.com/a",
    secrets: [
      {
        ...modern({}),
        data: {
          ".dockerconfigjson": base64('{"Auths": {"r.example.com": {"Username": "u", "PASSWORD": "p"}}}'),
        },
      },
    ],
    found: [{ username: "u", password: "p" }],
  },
  {
    name: "another path",
    image: "r.example.com/other/app",
    secrets: [modern({ "r.example.com/team": ada })],
    found: [],
  },
  {
    name: "a version before a path",
    image: "r.example.com/team/app",
    secrets: [modern({ "https://r.example.com/v2/team": ada })],
    found: [want],
  },
  {
    name: "auth wins over username and password",
    image: "r.example.com/a",
    secrets: [modern({ "r.example.com": { ...ada, username: "u", password: "p" } })],
    found: [want],
  },
  { name: "with a star", image: "a.example.com/x", secrets: [modern({ "*.example.com": ada })], found: [want] },
  { name: "a star is one word", image: "a.b.example.com/x", secrets: [modern({ "*.example.com": ada })], found: [] },
  {
    name: "the most exact first",
    image: "r.example.com/team/app",
    secrets: [
      modern({
        "r.example.com": { username: "all", password: "1" },
        "r.example.com/team": { username: "team", password: "2" },
      }),
    ],
    found: [
      { username: "team", password: "2" },
      { username: "all", password: "1" },
    ],
  },
  {
    name: "a host without a star before one with it",
    image: "r.example.com/team/app",
    secrets: [
      modern({
        "*.example.com/team": { username: "any", password: "1" },
        "r.example.com": { username: "exact", password: "2" },
      }),
    ],
    found: [
      { username: "exact", password: "2" },
      { username: "any", password: "1" },
    ],
  },
  {
    name: "of one location in the order of the secrets",
    image: "r.example.com/a",
    secrets: ["first", "second"].map((username) => modern({ "r.example.com": { username } })),
    found: [{ username: "first" }, { username: "second" }],
  },
  { name: "a star is no port", image: "r.example.com:5000/a", secrets: [modern({ "r.example.*": ada })], found: [] },
  {
    name: "no JSON",
    image: "r.example.com/a",
    secrets: [{ ...modern({}), data: { ".dockerconfigjson": base64("{") } }],
    found: [],
  },
  {
    name: "another type of secret",
    image: "r.example.com/a",
    secrets: [{ ...modern({ "r.example.com": ada }), type: "Opaque" }],
    found: [],
  },
];
for (const { name, image, secrets, found } of cases) {
  test(`pull credentials: ${name}`, () =>
    assert.deepEqual(
      pullCredentials(image, secrets).map(({ auth }) => auth),
      found,
    ));
}

test("a credential knows its secret and has the hash of Kubernetes", () => {
  const secret = modern({ "test.registry.io": { auth: "dXNlcjpwYXNzd29yZA==" } });
  const metadata = { name: "s1", namespace: "ns1", uid: "uid1" };
  assert.deepEqual(pullCredentials("test.registry.io/a", [{ ...secret, metadata }]), [
    {
      auth: { username: "user", password: "password" },
      owner: { kind: "Secret", ...metadata },
      hash: "a55436fc140d516560d072c5fe8700385ce9f41629abf65c1edcbcb39fac691d",
    },
  ]);
});
