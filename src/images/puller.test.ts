import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { pod } from "../../test/support/pods.ts";
import { FakeRuntime } from "../adapters/runtime/fake.ts";
import { RuntimeError } from "../adapters/runtime/port.ts";
import { AbortedError, manyListeners } from "../lib/abort.ts";
import { FakeClock } from "../lib/clock.ts";
import { LiveValue } from "../lib/live.ts";
import { StartError } from "../model/start-error.ts";
import { ImagePuller, type PullerOptions, type PullJournal } from "./index.ts";

/** A journal that keeps what it is told. */
class Notes implements PullJournal {
  readonly events: string[] = [];
  readonly details: string[] = [];
  outcome = "";

  begin(_step: "pull", { detail }: { detail: string }): ReturnType<PullJournal["begin"]> {
    this.details.push(detail);
    this.outcome = "going on";
    return {
      detail: (text) => void this.details.push(text),
      done: () => void (this.outcome = "ok"),
      fail: () => void (this.outcome = "failed"),
      abort: () => void (this.outcome = "aborted"),
    };
  }

  event(...[type, reason, what]: Parameters<PullJournal["event"]>): void {
    this.events.push(`${type} ${reason} ${typeof what === "string" ? what : what.message}`);
  }
}

class Pulling {
  readonly clock = new FakeClock();
  readonly runtime = new FakeRuntime({ clock: this.clock });
  readonly options: LiveValue<PullerOptions>;
  readonly agent = manyListeners();
  readonly puller: ImagePuller;
  readonly asked: object[] = [];
  released = 0;

  constructor(options: Partial<PullerOptions> = {}) {
    this.options = new LiveValue({ parallel: 1, qps: 0, burst: 0, ...options });
    const counted = { asked: (request: object) => void this.asked.push(request), pulled: () => undefined };
    const deps = { images: this.runtime, clock: this.clock, counted };
    this.puller = new ImagePuller(deps, this.options, this.agent.signal);
  }

  ensure(
    image: string,
    more: { policy?: string; notes?: Notes; uid?: string; namespace?: string; signal?: AbortSignal } = {},
  ): ReturnType<ImagePuller["ensure"]> {
    const { policy = "IfNotPresent", notes = new Notes(), uid = "uid-1", signal = this.agent.signal } = more;
    const built = pod("web", uid).container("app", { image, imagePullPolicy: policy }).build();
    const of = { ...built, metadata: { ...built.metadata, namespace: more.namespace ?? "default" } };
    const container = of.spec.containers[0] ?? { name: "" };
    const slot = { release: () => void this.released++ };
    return this.puller.ensure({ pod: of, container, journal: notes, slot }, { signal });
  }

  /** What a start is refused with. */
  async refused(image: string, more: Parameters<Pulling["ensure"]>[1] = {}): Promise<StartError> {
    const result = this.ensure(image, more).catch((error: unknown) => error);
    await this.clock.advance(0);
    const error = await result;
    assert.ok(error instanceof StartError, String(error));
    return error;
  }
}

describe("which policy pulls", () => {
  const cases = [
    { policy: "IfNotPresent", state: "present", pulls: 0, outcome: "there" },
    { policy: "IfNotPresent", state: "pullable", pulls: 1, outcome: "there" },
    { policy: "Always", state: "present", pulls: 1, outcome: "there" },
    { policy: "Always", state: "pullable", pulls: 1, outcome: "there" },
    { policy: "Always", state: "broken", pulls: 1, outcome: "ErrImagePull" },
    { policy: "Never", state: "present", pulls: 0, outcome: "there" },
    { policy: "Never", state: "pullable", pulls: 0, outcome: "ErrImageNeverPull" },
  ] as const;
  for (const { policy, state, pulls, outcome } of cases) {
    test(`${policy} with an image that is ${state}: ${pulls} pulls, ${outcome}`, async () => {
      const pulling = new Pulling();
      pulling.runtime.image("app:1", { state });
      const got = pulling.ensure("app:1", { policy }).then(
        () => "there",
        (error: unknown) => (error instanceof StartError ? error.reason : String(error)),
      );
      await pulling.clock.advance(0);
      assert.equal(await got, outcome);
      assert.equal(pulling.runtime.control.count("pullImage"), pulls);
    });
  }

  test("the answer is the image itself: containers are made from its id, not from a tag that may move", async () => {
    const pulling = new Pulling();
    pulling.runtime.image("app:1", { state: "pullable", uid: 7 });
    const { ref, image } = await pulling.ensure("app:1");
    assert.match(ref, /^sha256:/);
    assert.deepEqual([image.id, image.uid], [ref, 7]);
  });

  test("a name without a tag means :latest", async () => {
    const pulling = new Pulling();
    pulling.runtime.image("app:latest", { state: "pullable" });
    await pulling.ensure("app");
    assert.equal(pulling.runtime.control.calls.find(({ method }) => method === "pullImage")?.subject, "app:latest");
  });
});

describe("every request is counted once, with what was known of it", () => {
  const cases = [
    { policy: "IfNotPresent", image: "app:1", state: "present", isPresent: true, isRequired: false },
    { policy: "IfNotPresent", image: "app:1", state: "pullable", isPresent: false, isRequired: true },
    { policy: "Always", image: "app:1", state: "broken", isPresent: undefined, isRequired: true },
    { policy: "Never", image: "app:1", state: "pullable", isPresent: false, isRequired: undefined },
    { policy: "Always", image: "App:1", state: "pullable", isPresent: undefined, isRequired: undefined },
    { policy: "Never", image: "app:1", state: "unknown", isPresent: undefined, isRequired: undefined },
  ] as const;
  for (const { policy, image, state, ...want } of cases) {
    test(`${policy} with an image ${image} that is ${state}`, async () => {
      const pulling = new Pulling();
      if (state === "unknown") pulling.runtime.control.fail("imageStatus", new RuntimeError("Unavailable", "gone"));
      else pulling.runtime.image("app:1", { state });
      const got = pulling.ensure(image, { policy }).catch(() => undefined);
      await pulling.clock.advance(0);
      await got;
      assert.deepEqual(pulling.asked, [{ policy, ...want }]);
    });
  }
});

describe("what is told", () => {
  test("a present image", async () => {
    const pulling = new Pulling();
    const notes = new Notes();
    pulling.runtime.image("app:1");
    await pulling.ensure("app:1", { notes });
    assert.deepEqual(notes.events, ['Normal Pulled Container image "app:1" already present on machine']);
    assert.equal(pulling.released, 0);
  });

  test("a pull, with its own time, the time with waiting, and the size", async () => {
    const pulling = new Pulling();
    const notes = new Notes();
    pulling.runtime.image("slow:1", { state: "pullable", pullMs: 1000 });
    pulling.runtime.image("app:1", { state: "pullable", pullMs: 2500, sizeBytes: 42 });
    const first = pulling.ensure("slow:1");
    const second = pulling.ensure("app:1", { notes });
    await pulling.clock.advance(3500);
    await Promise.all([first, second]);
    assert.deepEqual(notes.events, [
      'Normal Pulling Pulling image "app:1"',
      'Normal Pulled Successfully pulled image "app:1" in 2.5s (3.5s including waiting). Image size: 42 bytes.',
    ]);
    assert.equal(notes.outcome, "ok");
  });

  test("a failed pull, and that it is held back", async () => {
    const pulling = new Pulling();
    const notes = new Notes();
    const why = 'failed to pull and unpack image "app:1": not found';
    const error = await pulling.refused("app:1", { notes });
    assert.deepEqual([error.reason, error.message], ["ErrImagePull", why]);
    assert.deepEqual(error.retry, {
      afterMs: 10_000,
      reason: "ImagePullBackOff",
      message: `Back-off pulling image "app:1": ErrImagePull: ${why}`,
    });
    assert.deepEqual(notes.events, [
      'Normal Pulling Pulling image "app:1"',
      `Warning Failed Failed to pull image "app:1": ${why}`,
      "Warning Failed Error: ErrImagePull",
      'Normal BackOff Back-off pulling image "app:1"',
      "Warning Failed Error: ImagePullBackOff",
    ]);
    assert.equal(notes.outcome, "failed");
  });

  test("Never without the image", async () => {
    const notes = new Notes();
    const message = 'Container image "app:1" is not present with pull policy of Never';
    const error = await new Pulling().refused("app:1", { policy: "Never", notes });
    assert.deepEqual([error.reason, error.message], ["ErrImageNeverPull", message]);
    assert.deepEqual(notes.events, [`Warning ErrImageNeverPull ${message}`, "Warning Failed Error: ErrImageNeverPull"]);
  });

  test("a name that names no image, without asking anybody", async () => {
    const pulling = new Pulling();
    const notes = new Notes();
    const error = await pulling.refused("App:1", { notes });
    assert.equal(error.reason, "InvalidImageName");
    assert.match(notes.events[0] ?? "", /^Warning InspectFailed Failed to apply default image tag "App:1": /);
    assert.deepEqual(notes.events.slice(1), ["Warning Failed Error: InvalidImageName"]);
    assert.deepEqual(pulling.runtime.control.calls, []);
  });

  test("a look-up that failed says nothing about the image: no pull, and soon again", async () => {
    const pulling = new Pulling();
    const notes = new Notes();
    pulling.runtime.image("app:1");
    pulling.runtime.control.fail("imageStatus", new RuntimeError("Unavailable", "gone"));
    const error = await pulling.refused("app:1", { notes });
    assert.deepEqual([error.reason, error.retry.afterMs], ["ImageInspectError", 1000]);
    assert.deepEqual(notes.events, [
      'Warning InspectFailed Failed to inspect image "app:1": gone',
      "Warning Failed Error: ImageInspectError",
    ]);
    assert.equal(pulling.runtime.control.count("pullImage"), 0);
  });

  test("Always pulls without a look-up before it", async () => {
    const pulling = new Pulling();
    pulling.runtime.image("app:1");
    pulling.runtime.control.fail("imageStatus", new RuntimeError("Unavailable", "gone"));
    const error = await pulling.refused("app:1", { policy: "Always" });
    assert.deepEqual([error.reason, pulling.runtime.control.count("pullImage")], ["ErrImagePull", 1]);
    await pulling.clock.advance(error.retry.afterMs);
    await pulling.ensure("app:1", { policy: "Always" });
    const methods = pulling.runtime.control.calls.map(({ method }) => method);
    assert.deepEqual(methods.slice(-2), ["pullImage", "imageStatus"]);
  });

  test("an image that is missing right after its pull is a failed pull", async () => {
    const pulling = new Pulling();
    pulling.runtime.image("app:1", { state: "pullable", pullMs: 10 });
    const result = pulling.ensure("app:1").catch((error: unknown) => error);
    await pulling.clock.advance(9);
    pulling.runtime.control.fail("imageStatus", new RuntimeError("Unavailable", "gone"));
    await pulling.clock.advance(1);
    assert.equal((await result) instanceof StartError, true);
  });
});

describe("the back-off", () => {
  test("doubles from 10 s to 5 min, by pod and image", async () => {
    const pulling = new Pulling();
    const waits: number[] = [];
    for (let i = 0; i < 7; i++) {
      const { afterMs } = (await pulling.refused("app:1")).retry;
      waits.push(afterMs / 1000);
      await pulling.clock.advance(afterMs);
    }
    assert.deepEqual(waits, [10, 20, 40, 80, 160, 300, 300]);
    assert.equal((await pulling.refused("app:1", { uid: "uid-2" })).retry.afterMs, 10_000);
    assert.equal((await pulling.refused("app:2")).retry.afterMs, 10_000);
  });

  test("goes on after a success, and begins anew 10 min after the last failure", async () => {
    const pulling = new Pulling();
    await pulling.refused("app:1");
    await pulling.clock.advance(10_000);
    pulling.runtime.image("app:1", { state: "pullable" });
    await pulling.ensure("app:1");
    pulling.runtime.image("app:1", { state: "broken" });
    assert.equal((await pulling.refused("app:1")).retry.afterMs, 20_000);
    await pulling.clock.advance(600_000);
    assert.equal((await pulling.refused("app:1")).retry.afterMs, 40_000);
    await pulling.clock.advance(600_001);
    assert.equal((await pulling.refused("app:1")).retry.afterMs, 10_000);
  });

  test("holds back every container of the pod with the image, with the real cause", async () => {
    const pulling = new Pulling();
    const notes = new Notes();
    const why = 'failed to pull and unpack image "app:1": not found';
    await pulling.refused("app:1");
    await pulling.clock.advance(4000);
    const error = await pulling.refused("app:1", { notes });
    assert.deepEqual([error.reason, error.retry.afterMs], ["ImagePullBackOff", 6000]);
    assert.equal(error.message, `Back-off pulling image "app:1": ErrImagePull: ${why}`);
    assert.deepEqual(notes.events, [
      'Normal BackOff Back-off pulling image "app:1"',
      "Warning Failed Error: ImagePullBackOff",
    ]);
    assert.equal(pulling.runtime.control.count("pullImage"), 1);
    await pulling.clock.advance(6000);
    assert.equal((await pulling.refused("app:1")).retry.afterMs, 20_000);
  });

  test("does not hold back a container whose image has arrived meanwhile", async () => {
    const pulling = new Pulling();
    await pulling.refused("app:1");
    pulling.runtime.image("app:1");
    assert.match((await pulling.ensure("app:1")).ref, /^sha256:/);
  });

  test("an abort is no failure and costs no back-off", async () => {
    const pulling = new Pulling();
    const notes = new Notes();
    const given = new AbortController();
    pulling.runtime.image("app:1", { state: "pullable", pullMs: 1000 });
    const result = pulling.ensure("app:1", { notes, signal: given.signal }).catch((error: unknown) => error);
    await pulling.clock.advance(500);
    given.abort(new AbortedError("planned anew"));
    assert.equal((await result) === given.signal.reason, true);
    await pulling.clock.advance(0);
    assert.equal(notes.outcome, "aborted");
    assert.equal(pulling.runtime.control.inFlight("pullImage"), 0);
    pulling.runtime.image("app:1", { state: "broken" });
    assert.equal((await pulling.refused("app:1")).retry.afterMs, 10_000);
  });
});

describe("how many at once", () => {
  const slow = ["a:1", "b:1", "c:1", "d:1"];

  function start(pulling: Pulling): Notes[] {
    const notes = slow.map(() => new Notes());
    for (const [index, image] of slow.entries()) {
      pulling.runtime.image(image, { state: "pullable", pullMs: 1000 });
      void pulling.ensure(image, { notes: notes[index], uid: image });
    }
    return notes;
  }

  const cases = [
    { name: "1 pulls one after the other", parallel: 1, peak: 1 },
    { name: "2 at once", parallel: 2, peak: 2 },
    { name: "0 has no limit", parallel: 0, peak: 4 },
  ];
  for (const { name, parallel, peak } of cases) {
    test(name, async () => {
      const pulling = new Pulling({ parallel });
      start(pulling);
      await pulling.clock.advance(4000);
      assert.equal(pulling.runtime.control.peak("pullImage"), peak);
      assert.equal(pulling.runtime.control.count("pullImage"), 4);
    });
  }

  test("a raised limit lets more in at once", async () => {
    const pulling = new Pulling({ parallel: 1 });
    start(pulling);
    await pulling.clock.advance(0);
    assert.equal(pulling.runtime.control.inFlight("pullImage"), 1);
    pulling.options.set({ parallel: 3, qps: 0, burst: 0 });
    await pulling.clock.advance(0);
    assert.equal(pulling.runtime.control.inFlight("pullImage"), 3);
  });

  test("a queued pull reports behind how many pulls it waits, and that its turn came", async () => {
    const pulling = new Pulling({ parallel: 1 });
    const notes = start(pulling);
    await pulling.clock.advance(2000);
    assert.deepEqual(notes[2]?.details, [
      "c:1",
      "c:1: waiting behind 2 pulls",
      "c:1: waiting behind 1 pull",
      "c:1: pulling",
    ]);
  });

  test("with several pulls at once, all that run are ahead", async () => {
    const pulling = new Pulling({ parallel: 3 });
    const notes = start(pulling);
    await pulling.clock.advance(0);
    assert.deepEqual(notes[3]?.details, ["d:1", "d:1: waiting behind 3 pulls"]);
  });

  test("a throttled pull waits and reports it, and is no error", async () => {
    const pulling = new Pulling({ parallel: 0, qps: 1, burst: 2 });
    const notes = start(pulling);
    await pulling.clock.advance(5000);
    assert.deepEqual(notes[3]?.details.slice(0, 4), [
      "d:1",
      "d:1: waiting behind 1 pull (registryPullQPS 1)",
      "d:1: next to be pulled (registryPullQPS 1)",
      "d:1: pulling",
    ]);
    assert.equal(notes[3]?.outcome, "ok");
    assert.deepEqual(
      notes[3]?.events.filter((event) => event.startsWith("Warning")),
      [],
    );
  });

  test("the start slot is given back before the pull, so that other pods start meanwhile", async () => {
    const pulling = new Pulling();
    pulling.runtime.image("app:1", { state: "pullable", pullMs: 1000 });
    void pulling.ensure("app:1");
    await pulling.clock.advance(0);
    assert.equal(pulling.released, 1);
  });

  test("two pods that want one image cause one pull", async () => {
    const pulling = new Pulling({ parallel: 0 });
    pulling.runtime.image("app:1", { state: "pullable", pullMs: 1000 });
    const both = [pulling.ensure("app:1", { uid: "uid-1" }), pulling.ensure("app:1", { uid: "uid-2" })];
    await pulling.clock.advance(1000);
    const [first, second] = await Promise.all(both);
    assert.equal(first?.ref, second?.ref);
    assert.equal(pulling.runtime.control.count("pullImage"), 1);
  });

  test("pods of two namespaces share what the first pull has brought", async () => {
    const pulling = new Pulling({ parallel: 0 });
    const notes = new Notes();
    pulling.runtime.image("app:1", { state: "pullable", pullMs: 1000 });
    const both = [
      pulling.ensure("app:1", { namespace: "one" }),
      pulling.ensure("app:1", { namespace: "two", uid: "uid-2", notes }),
    ];
    await pulling.clock.advance(1000);
    await Promise.all(both);
    assert.equal(pulling.runtime.control.count("pullImage"), 1);
    assert.deepEqual(notes.details, ["app:1", "app:1: waiting behind 1 pull of the same image"]);
    assert.match(notes.events.at(-1) ?? "", /^Normal Pulled .*\(1s including waiting\)/);
  });

  test("a pod of another namespace that always pulls asks the registry after the first pull", async () => {
    const pulling = new Pulling({ parallel: 0 });
    pulling.runtime.image("app:1", { state: "pullable", pullMs: 1000 });
    const first = pulling.ensure("app:1", { namespace: "one" });
    await pulling.clock.advance(500);
    const second = pulling.ensure("app:1", { namespace: "two", uid: "uid-2", policy: "Always" });
    await pulling.clock.advance(2000);
    await Promise.all([first, second]);
    assert.equal(pulling.runtime.control.count("pullImage"), 2);
    assert.equal(pulling.runtime.control.peak("pullImage"), 1);
  });

  test("a pull that fails does not fail the pull of another namespace that waits behind it", async () => {
    const pulling = new Pulling({ parallel: 1 });
    pulling.runtime.image("app:1", { state: "pullable", pullMs: 1000 });
    pulling.runtime.control.fail("pullImage", new RuntimeError("Unknown", "denied"));
    const first = pulling.ensure("app:1", { namespace: "one" }).catch((error: unknown) => error);
    const second = pulling.ensure("app:1", { namespace: "two", uid: "uid-2" });
    await pulling.clock.advance(2000);
    assert.ok((await first) instanceof StartError);
    assert.match((await second).ref, /^sha256:/);
  });

  test("a pull that waits behind another of the same image leaves when it is aborted", async () => {
    const pulling = new Pulling({ parallel: 1 });
    const given = new AbortController();
    pulling.runtime.image("app:1", { state: "pullable", pullMs: 1000 });
    const first = pulling.ensure("app:1", { namespace: "one" });
    const left = pulling.ensure("app:1", { namespace: "two", uid: "uid-2", signal: given.signal });
    await pulling.clock.advance(500);
    given.abort(new AbortedError("deleted"));
    await assert.rejects(left, /deleted/);
    await pulling.clock.advance(500);
    await first;
    assert.equal(pulling.runtime.control.count("pullImage"), 1);
  });

  test("the rate is kept: after the burst, one each 1/qps", async () => {
    const pulling = new Pulling({ parallel: 0, qps: 2, burst: 2 });
    start(pulling);
    await pulling.clock.advance(5000);
    const began = pulling.runtime.control.calls.filter(({ method }) => method === "pullImage").map(({ at }) => at);
    assert.deepEqual(began, [0, 0, 500, 1000]);
  });
});

describe("a stuck pull", () => {
  const image = { state: "pullable", pullMs: 4000, sizeBytes: 4_194_304, stallsAtBytes: 1_048_576 } as const;
  const words = "pull made no progress for 30s (imagePullProgressTimeout) after 1.0Mi of 4.0Mi bytes";

  test("is reported, cancelled and tried again with back-off, so that it does not block the queue", async () => {
    const pulling = new Pulling({ parallel: 1, progressTimeoutMs: 30_000 });
    const [notes, next] = [new Notes(), new Notes()];
    pulling.runtime.image("app:1", image);
    pulling.runtime.image("next:1", { state: "pullable" });
    const failed = pulling.ensure("app:1", { notes }).catch((error: unknown) => error);
    const queued = pulling.ensure("next:1", { notes: next, uid: "uid-2" });
    await pulling.clock.advance(35_000);
    const error = await failed;
    assert.ok(error instanceof StartError);
    assert.deepEqual([error.reason, error.message, error.retry.afterMs], ["ErrImagePull", words, 10_000]);
    assert.equal(error.retry.message, `Back-off pulling image "app:1": ErrImagePull: ${words}`);
    assert.ok(notes.events.includes(`Warning ImagePullStuck ${words}`), notes.events.join("\n"));
    assert.equal(notes.outcome, "failed");
    assert.match((await queued).ref, /^sha256:/);
    assert.equal(pulling.runtime.control.inFlight("pullImage"), 0);
    pulling.runtime.image("app:1", { state: "pullable" });
    await pulling.clock.advance(10_000);
    assert.match((await pulling.ensure("app:1")).ref, /^sha256:/);
  });

  test("names the registry's last answer where there was one", async () => {
    const pulling = new Pulling({ progressTimeoutMs: 30_000 });
    pulling.runtime.image("app:1", { ...image, stallsAtBytes: undefined, state: "broken", pullMs: 0 });
    await pulling.refused("app:1");
    await pulling.clock.advance(10_000);
    pulling.runtime.image("app:1", image);
    const failed = pulling.ensure("app:1").catch((error: unknown) => error);
    await pulling.clock.advance(35_000);
    const answer = 'failed to pull and unpack image "app:1": unexpected end of data';
    assert.equal(String(await failed), `StartError: ${words}; the registry's last answer: ${answer}`);
  });
});
