import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { RuntimeImage } from "../../adapters/runtime/port.ts";
import { manyListeners } from "../../lib/abort.ts";
import { FakeClock } from "../../lib/clock.ts";
import { silent } from "../../lib/log.ts";
import type { PullCredential } from "../../model/pull-credential.ts";
import type { VerificationPolicy } from "./policy.ts";
import { PullVerifier } from "./pull-verifier.ts";
import { encodeIntent, encodeRecord, recordFileName } from "./record-format.ts";
import { RecordStore } from "./record-store.ts";

const PULLING = "/root/image_manager/pulling/";
const PULLED = "/root/image_manager/pulled/";
const image = "r.example.com/app:1";
const present = { image, ref: "sha256:1" };

const secret = (name: string, hash: string): PullCredential => ({
  auth: { username: "u", password: hash },
  owner: { kind: "Secret", uid: `uid-${name}`, namespace: "ns", name },
  hash,
});
const account = (name: string): PullCredential => ({
  auth: { username: "u" },
  owner: { kind: "ServiceAccount", uid: `uid-${name}`, namespace: "ns", name },
  hash: "h",
});
const ofNode: PullCredential = { auth: { username: "node" }, hash: "n" };

/** A disk that outlives agents, and the agents on it. */
class Disk {
  readonly clock = new FakeClock();
  readonly files = new Map<string, string>();
  readonly results: string[] = [];
  images: RuntimeImage[] = [];
  isFull = false;
  reads = 0;
  onList = async (): Promise<RuntimeImage[]> => this.images;

  agent(policy: VerificationPolicy["policy"] = "NeverVerifyPreloadedImages"): PullVerifier {
    const { files, clock } = this;
    const store = new RecordStore(
      {
        log: silent,
        files: {
          names: async (directory) =>
            [...files.keys()].flatMap((path) => (path.startsWith(directory) ? [path.slice(directory.length + 1)] : [])),
          read: async (path) => {
            this.reads++;
            return files.get(path);
          },
          write: async (path, text) => {
            if (this.isFull) throw new Error("no space left on device");
            files.set(path, text);
          },
          remove: async (path) => void files.delete(path),
        },
      },
      "/root",
    );
    const images = { listImages: () => this.onList() };
    const checked = (result: string): void => void this.results.push(result);
    return new PullVerifier({ store, images, clock, log: silent, checked }, { policy, allowlist: [] });
  }

  async pull(agent: PullVerifier, credential: PullCredential | undefined): Promise<void> {
    await agent.begin(image);
    await agent.pulled(present, credential);
  }

  /** Starts an agent as after a crash, until it has read everything. */
  async restarted(): Promise<PullVerifier> {
    const agent = this.agent();
    const stop = manyListeners();
    const running = agent.run(stop.signal);
    await this.clock.advance(0);
    stop.abort();
    await running;
    return agent;
  }
}

const runtimeImage = (id: string, tags: readonly string[], digests: readonly string[] = []): RuntimeImage => ({
  id,
  tags,
  digests,
  sizeBytes: 1,
  username: "",
  pinned: false,
});
const having =
  (...credentials: readonly PullCredential[]) =>
  async () =>
    credentials;

describe("who may use an image that was pulled", () => {
  const cases = [
    { what: "with a secret, a pod with it", by: secret("a", "1"), pod: [secret("a", "1")], must: false },
    { what: "with a secret, a pod without any", by: secret("a", "1"), pod: [], must: true },
    { what: "with a secret, a pod with another one", by: secret("a", "1"), pod: [secret("b", "2")], must: true },
    {
      what: "with a secret, the same credential elsewhere",
      by: secret("a", "1"),
      pod: [secret("b", "1")],
      must: false,
    },
    { what: "with a secret, the same secret changed", by: secret("a", "1"), pod: [secret("a", "2")], must: false },
    { what: "with a secret, the node's credential", by: secret("a", "1"), pod: [ofNode], must: true },
    { what: "with a secret, a service account", by: secret("a", "1"), pod: [account("a")], must: true },
    { what: "with a service account, a pod with it", by: account("a"), pod: [account("a")], must: false },
    { what: "with a service account, another one", by: account("a"), pod: [account("b")], must: true },
    { what: "with the node's credential, any pod", by: ofNode, pod: [], must: false },
    { what: "anonymously, any pod", by: undefined, pod: [], must: false },
  ];
  for (const { what, by, pod, must } of cases) {
    test(`${what}: ${must ? "must pull" : "may use it"}`, async () => {
      const disk = new Disk();
      const agent = disk.agent();
      await disk.pull(agent, by);
      assert.equal(await agent.mustPull(present, having(...pod)), must);
      assert.deepEqual(disk.results, [must ? "mustAuthenticate" : "credentialRecordFound"]);
      assert.deepEqual([...disk.files.keys()], [PULLED + recordFileName(present.ref)]);
    });
  }
});

test("a credential that was recognised in another secret is recorded with that secret", async () => {
  const disk = new Disk();
  const agent = disk.agent();
  await disk.pull(agent, secret("a", "1"));
  await agent.mustPull(present, having(secret("b", "1")));
  assert.equal(await agent.mustPull(present, having(secret("b", "2"))), false);
});

test("the same image by another name must be pulled by that name", async () => {
  const disk = new Disk();
  const agent = disk.agent();
  await disk.pull(agent, undefined);
  const other = { ...present, image: "r.example.com/private:1" };
  assert.equal(await agent.mustPull(other, having()), true);
  assert.equal(await agent.mustPull({ ...present, image: "r.example.com/app:2" }, having()), false);
});

test("an image that nobody pulled here is free unless every image is verified", async () => {
  const disk = new Disk();
  assert.equal(await disk.agent().mustPull(present, having()), false);
  assert.equal(await disk.agent("AlwaysVerify").mustPull(present, having(secret("a", "1"))), true);
  assert.equal(await disk.agent("NeverVerify").mustPull(present, having()), false);
});

test("a failed pull leaves nothing; of two pulls the first one that ends keeps the intent", async () => {
  const disk = new Disk();
  const agent = disk.agent();
  await Promise.all([agent.begin(image), agent.begin(image)]);
  await agent.failed(image);
  assert.equal(disk.files.get(PULLING + recordFileName(image)), encodeIntent(image));
  assert.equal(await agent.mustPull(present, having()), true);
  await agent.failed(image);
  assert.equal(disk.files.size, 0);
});

test("credentials are not looked up where they do not decide", async () => {
  const disk = new Disk();
  const agent = disk.agent();
  const never = (): never => assert.fail("looked up");
  assert.equal(await agent.mustPull(present, never), false);
  await disk.pull(agent, undefined);
  assert.equal(await agent.mustPull(present, never), false);
});

test("an image without a record costs no disk access once the records are loaded", async () => {
  const disk = new Disk();
  const agent = await disk.restarted();
  disk.reads = 0;
  assert.equal(await agent.mustPull(present, having()), false);
  assert.equal(disk.reads, 0);
  await disk.pull(agent, secret("a", "1"));
  assert.equal(await agent.mustPull(present, having()), true);
});

describe("an agent that was killed between the pull and its record", () => {
  for (const [what, images] of [
    ["by its tag", [runtimeImage("sha256:1", [image])]],
    ["by its digest", [runtimeImage("sha256:1", [], [image])]],
  ] as const) {
    test(`finds the image ${what} after the restart: it must be verified`, async () => {
      const disk = new Disk();
      await disk.agent().begin(image);
      disk.images = [...images];
      const agent = await disk.restarted();
      assert.equal(await agent.mustPull(present, having(secret("a", "1"))), true);
      assert.equal(await agent.mustPull({ ...present, image: "r.example.com/other" }, having()), true);
      assert.deepEqual([...disk.files.keys()], [PULLED + recordFileName("sha256:1")]);
    });
  }

  test("recognises a short name, and keeps the intent of an image that is not there", async () => {
    const disk = new Disk();
    await disk.agent().begin("busybox");
    await disk.agent().begin(image);
    disk.images = [runtimeImage("sha256:2", ["docker.io/library/busybox:latest"])];
    await disk.restarted();
    assert.deepEqual([...disk.files.keys()].sort(), [
      PULLED + recordFileName("sha256:2"),
      PULLING + recordFileName(image),
    ]);
  });
});

test("files of v1alpha1 are rewritten at the start, damaged ones are left alone", async () => {
  const disk = new Disk();
  const record = { imageRef: "sha256:1", updatedAt: 0, access: new Map() };
  const path = PULLED + recordFileName("sha256:1");
  disk.files.set(path, encodeRecord(record).replace("v1beta1", "v1alpha1"));
  disk.files.set(`${PULLED}sha256-damaged`, "{");
  disk.images = [runtimeImage("sha256:1", [image])];
  await disk.restarted();
  assert.equal(disk.files.get(path), encodeRecord(record));
  assert.equal(disk.files.get(`${PULLED}sha256-damaged`), "{");
});

test("a damaged record demands a pull, and the pull replaces it", async () => {
  const disk = new Disk();
  const agent = disk.agent();
  disk.files.set(PULLED + recordFileName(present.ref), "{");
  assert.equal(await agent.mustPull(present, having()), true);
  assert.deepEqual(disk.results, ["error"]);
  await disk.pull(agent, undefined);
  assert.equal(await agent.mustPull(present, having()), false);
});

test("a damaged intent beside a record does not matter", async () => {
  const disk = new Disk();
  const agent = disk.agent();
  await disk.pull(agent, secret("a", "1"));
  disk.files.set(PULLING + recordFileName(image), "{");
  assert.equal(await agent.mustPull(present, having(secret("a", "1"))), false);
  disk.files.delete(PULLED + recordFileName(present.ref));
  assert.equal(await agent.mustPull(present, having(secret("a", "1"))), true);
  assert.deepEqual(disk.results, ["credentialRecordFound", "error"]);
});

test("without space the pull does not begin, and a pull that cannot be recorded demands another one", async () => {
  const disk = new Disk();
  const agent = disk.agent();
  disk.isFull = true;
  await assert.rejects(agent.begin(image), /record image pull intent: no space left/);
  disk.isFull = false;
  await agent.begin(image);
  disk.isFull = true;
  await agent.pulled(present, secret("a", "1"));
  assert.equal(await agent.mustPull(present, having(secret("a", "1"))), true);
});

test("the record of an image that is removed is removed, and that of one that was removed while no agent ran", async () => {
  const disk = new Disk();
  const agent = disk.agent();
  await disk.pull(agent, undefined);
  agent.removed("sha256:2");
  agent.removed("sha256:1");
  await disk.clock.advance(0);
  assert.equal(disk.files.size, 0);
  await disk.pull(agent, undefined);
  await disk.clock.advance(1000);
  disk.images = [runtimeImage("sha256:2", [])];
  await disk.restarted();
  assert.equal(disk.files.size, 0);
});

test("after a collection records of images that somebody else removed go, too, except those pulled again", async () => {
  const disk = new Disk();
  const agent = disk.agent();
  const stop = manyListeners();
  const running = agent.run(stop.signal);
  const refs = ["sha256:1", "sha256:2", "sha256:3", "sha256:4"];
  for (const ref of refs) {
    await agent.begin(image);
    await agent.pulled({ image, ref }, undefined);
  }
  await disk.clock.advance(5000);
  disk.images = [runtimeImage("sha256:4", [])];
  const { images } = disk;
  // Pulled again when the list was made already: nothing in its record changes.
  disk.onList = async () => {
    await agent.begin(image);
    await agent.pulled({ image, ref: "sha256:3" }, undefined);
    return images;
  };
  agent.removed("sha256:1");
  await disk.clock.advance(11_000);
  const left = [...disk.files.keys()].sort();
  assert.deepEqual(left, ["sha256:3", "sha256:4"].map((ref) => PULLED + recordFileName(ref)).sort());
  stop.abort();
  await running;
});

test("at the start no record is removed that is newer than the list of images, or for an empty list", async () => {
  const disk = new Disk();
  await disk.pull(disk.agent(), undefined);
  disk.images = [runtimeImage("sha256:2", [])];
  await disk.restarted();
  await disk.clock.advance(1000);
  disk.images = [];
  await disk.restarted();
  assert.equal(disk.files.size, 1);
});

test("a record stays small whoever pulls", async () => {
  const disk = new Disk();
  const agent = disk.agent();
  const secrets = Array.from({ length: 1000 }, (_, at) => ({
    uid: `u${at}`,
    namespace: "ns",
    name: `s${at}`,
    credentialHash: `h${at}`,
  }));
  const access = new Map([["r.example.com/app", { secrets, accounts: [], isOpen: false }]]);
  disk.files.set(PULLED + recordFileName(present.ref), encodeRecord({ imageRef: present.ref, updatedAt: 0, access }));
  await disk.pull(agent, secret("new", "fresh"));
  const text = disk.files.get(PULLED + recordFileName(present.ref)) ?? "";
  assert.equal(text.split("credentialHash").length - 1, 1000);
  assert.equal(await agent.mustPull(present, having(secret("other", "fresh"))), false);
  assert.ok(!text.includes('"password"'));
});

describe("a pull of which it is not known what came of it", () => {
  const intent = PULLING + recordFileName(image);
  const record = PULLED + recordFileName(present.ref);
  const stop = manyListeners();
  const here = [runtimeImage(present.ref, [image])];

  /** An agent with an unfinished pull. */
  async function unfinished(before?: string) {
    const disk = new Disk();
    const agent = disk.agent();
    await agent.begin(image);
    const known = agent.unfinished(image, before, stop);
    await disk.clock.advance(0);
    return { disk, agent, known };
  }

  test("brought the image after all: it is not free, and counts as pulled with unknown credentials", async () => {
    const { disk, agent, known } = await unfinished();
    disk.images = here;
    assert.deepEqual([...disk.files.keys()], [intent], "nothing is known yet");
    assert.equal(await agent.mustPull(present, having(secret("a", "1"))), true);
    await disk.clock.advance(5000);
    await known;
    assert.deepEqual([...disk.files.keys()], [record]);
    assert.equal(await agent.mustPull(present, having(secret("a", "1"))), true);
  });

  test("brought nothing: its intent stays for minutes, for a runtime that finishes what it has begun", async () => {
    const { disk, known } = await unfinished();
    await disk.clock.advance(299_000);
    assert.deepEqual([...disk.files.keys()], [intent]);
    await disk.clock.advance(10_000);
    await known;
    assert.deepEqual([...disk.files.keys()], []);
  });

  test("brought the image minutes later", async () => {
    const { disk, known } = await unfinished();
    await disk.clock.advance(60_000);
    disk.images = here;
    await disk.clock.advance(300_000);
    await known;
    assert.deepEqual([...disk.files.keys()], [record]);
  });

  test("changed nothing: a preloaded image stays one", async () => {
    const { disk, agent, known } = await unfinished(present.ref);
    disk.images = here;
    await disk.clock.advance(5000);
    await known;
    assert.deepEqual([...disk.files.keys()], []);
    assert.equal(await agent.mustPull(present, having()), false);
  });

  test("keeps what is recorded of the image", async () => {
    const { disk, agent, known } = await unfinished();
    disk.images = here;
    await disk.pull(agent, secret("a", "1"));
    assert.deepEqual([...disk.files.keys()].sort(), [record, intent]);
    await disk.clock.advance(5000);
    await known;
    assert.deepEqual([...disk.files.keys()], [record]);
    assert.equal(await agent.mustPull(present, having(secret("a", "1"))), false);
  });

  test("keeps its intent if the record cannot be written", async () => {
    const { disk, known } = await unfinished();
    disk.images = here;
    disk.isFull = true;
    await disk.clock.advance(5000);
    await known;
    assert.deepEqual([...disk.files.keys()], [intent]);
  });

  test("waits for a runtime that does not answer", async () => {
    const { disk, known } = await unfinished();
    disk.onList = () => Promise.reject(new Error("connection refused"));
    await disk.clock.advance(60_000);
    assert.deepEqual([...disk.files.keys()], [intent]);
    disk.images = here;
    disk.onList = async () => disk.images;
    await disk.clock.advance(5000);
    await known;
    assert.deepEqual([...disk.files.keys()], [record]);
  });

  test("leaves its intent to the next agent", async () => {
    const disk = new Disk();
    const agent = disk.agent();
    const ends = manyListeners();
    await agent.begin(image);
    const known = agent.unfinished(image, undefined, ends);
    await disk.clock.advance(1000);
    ends.abort();
    await known;
    assert.deepEqual([...disk.files.keys()], [intent]);
    disk.images = here;
    const next = await disk.restarted();
    assert.deepEqual([...disk.files.keys()], [record]);
    assert.equal(await next.mustPull(present, having()), true);
  });
});

test("an intent of a killed agent stays while the image is pulled again", async () => {
  const disk = new Disk();
  disk.files.set(PULLING + recordFileName(image), encodeIntent(image));
  let answer: (images: RuntimeImage[]) => void = () => undefined;
  disk.onList = () => new Promise((resolve) => (answer = resolve));
  const agent = disk.agent();
  const stop = manyListeners();
  const running = agent.run(stop.signal);
  await disk.clock.advance(0);
  await agent.begin(image);
  answer([runtimeImage(present.ref, [image])]);
  await disk.clock.advance(0);
  assert.ok(disk.files.has(PULLING + recordFileName(image)), "the pull is under way");
  await agent.failed(image);
  assert.ok(!disk.files.has(PULLING + recordFileName(image)));
  stop.abort();
  await running;
});
