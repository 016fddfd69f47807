import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { AbortedError } from "../lib/abort.ts";
import { FakeClock } from "../lib/clock.ts";
import { type PulledImage, type PullWork, SharedPulls } from "./shared-pulls.ts";

/** Pulls that end when the test says so, and that give up when they are aborted. */
class Pulls {
  readonly begun: { image: string; work: PullWork; succeed(): void; fail(error: Error): void }[] = [];
  readonly shared: SharedPulls;
  private readonly clock = new FakeClock();

  constructor(readonly agent = new AbortController()) {
    this.shared = new SharedPulls(agent.signal);
  }

  join(image: string, options: PullWork): Promise<PulledImage> {
    return this.shared.join(image, { ...options, pull: (work) => this.pull(image, work) });
  }

  settle(): Promise<void> {
    return this.clock.advance(0);
  }

  private pull(image: string, work: PullWork): Promise<PulledImage> {
    work.onDetail({ text: "begun" });
    return new Promise((resolve, reject) => {
      const succeed = (): void => resolve({ ref: `${image}#${this.begun.length}`, tookMs: 1 });
      this.begun.push({ image, work, succeed, fail: reject });
      work.signal.addEventListener("abort", () => reject(work.signal.reason as Error));
    });
  }
}

function caller(): { controller: AbortController; details: string[]; options: PullWork } {
  const controller = new AbortController();
  const details: string[] = [];
  return {
    controller,
    details,
    options: { signal: controller.signal, onDetail: ({ text }) => void details.push(text) },
  };
}

describe("shared pulls", () => {
  test("two callers for one image share one pull and its answer", async () => {
    const pulls = new Pulls();
    const both = [pulls.join("a:1", caller().options), pulls.join("a:1", caller().options)];
    await pulls.settle();
    assert.equal(pulls.begun.length, 1);
    pulls.begun[0]?.succeed();
    const [first, second] = await Promise.all(both);
    assert.equal(first?.ref, "a:1#1");
    assert.deepEqual(second, first);
  });

  test("different images are different pulls", async () => {
    const pulls = new Pulls();
    void pulls.join("a:1", caller().options);
    void pulls.join("b:1", caller().options);
    await pulls.settle();
    assert.deepEqual(
      pulls.begun.map(({ image }) => image),
      ["a:1", "b:1"],
    );
  });

  test("a caller who leaves does not take the pull with it; the last one does", async () => {
    const pulls = new Pulls();
    const [one, two] = [caller(), caller()];
    const first = pulls.join("a:1", one.options);
    const second = pulls.join("a:1", two.options);
    await pulls.settle();
    one.controller.abort(new AbortedError("one left"));
    await assert.rejects(first, /one left/);
    assert.equal(pulls.begun[0]?.work.signal.aborted, false);
    two.controller.abort(new AbortedError("two left"));
    await assert.rejects(second, /two left/);
    assert.equal(pulls.begun[0]?.work.signal.aborted, true);
  });

  test("who comes after a pull was given up gets a new one", async () => {
    const pulls = new Pulls();
    const gone = caller();
    const first = pulls.join("a:1", gone.options);
    await pulls.settle();
    gone.controller.abort(new AbortedError());
    await assert.rejects(first, AbortedError);
    const again = pulls.join("a:1", caller().options);
    await pulls.settle();
    assert.equal(pulls.begun.length, 2);
    pulls.begun[1]?.succeed();
    assert.equal((await again).ref, "a:1#2");
  });

  test("who comes in the moment in which the last one leaves takes its pull over", async () => {
    const pulls = new Pulls();
    const gone = caller();
    const first = pulls.join("a:1", gone.options);
    await pulls.settle();
    gone.controller.abort(new AbortedError());
    const again = pulls.join("a:1", caller().options);
    await assert.rejects(first, AbortedError);
    pulls.begun[0]?.succeed();
    assert.equal((await again).ref, "a:1#1");
  });

  test("all who wait hear an error, and the next one tries anew", async () => {
    const pulls = new Pulls();
    const both = [pulls.join("a:1", caller().options), pulls.join("a:1", caller().options)];
    await pulls.settle();
    pulls.begun[0]?.fail(new Error("no such image"));
    for (const result of await Promise.allSettled(both)) assert.equal(result.status, "rejected");
    void pulls.join("a:1", caller().options);
    await pulls.settle();
    assert.equal(pulls.begun.length, 2);
  });

  test("a pull that ended never takes the next pull of the same image off the list", async () => {
    const pulls = new Pulls();
    const first = pulls.join("a:1", caller().options);
    await pulls.settle();
    pulls.begun[0]?.succeed();
    // A caller at each of the first few turns after the end, before and after the first caller has its answer.
    for (let turn = 0; turn < 12; turn++) {
      void pulls.join("a:1", caller().options);
      await Promise.resolve();
    }
    await first;
    await pulls.settle();
    assert.equal(pulls.begun.length, 2);
  });

  test("every caller hears how far it is, also one who joins later", async () => {
    const pulls = new Pulls();
    const [one, two] = [caller(), caller()];
    void pulls.join("a:1", one.options);
    await pulls.settle();
    void pulls.join("a:1", two.options);
    assert.deepEqual(two.details, ["begun"]);
    pulls.begun[0]?.work.onDetail({ text: "half" });
    assert.deepEqual(
      [one.details, two.details],
      [
        ["begun", "half"],
        ["begun", "half"],
      ],
    );
  });

  test("who left hears nothing more", async () => {
    const pulls = new Pulls();
    const [one, two] = [caller(), caller()];
    const first = pulls.join("a:1", one.options);
    void pulls.join("a:1", two.options);
    await pulls.settle();
    one.controller.abort(new AbortedError());
    await assert.rejects(first);
    pulls.begun[0]?.work.onDetail({ text: "half" });
    assert.deepEqual(one.details, ["begun"]);
  });

  test("the end of the agent ends every pull", async () => {
    const pulls = new Pulls();
    const waiting = pulls.join("a:1", caller().options);
    await pulls.settle();
    pulls.agent.abort(new AbortedError("the agent stops"));
    await assert.rejects(waiting, /the agent stops/);
    assert.equal(pulls.begun[0]?.work.signal.aborted, true);
  });
});
