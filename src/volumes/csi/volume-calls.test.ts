import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { manyListeners } from "../../lib/abort.ts";
import { VolumeCalls } from "./volume-calls.ts";

const never = { signal: manyListeners().signal };

/** A driver whose calls end when they are told to. */
function driver() {
  const events: string[] = [];
  const ends = new Map<string, () => void>();
  const call = (name: string) => (): Promise<string> => {
    events.push(`begin ${name}`);
    return new Promise((resolve) =>
      ends.set(name, () => {
        events.push(`end ${name}`);
        resolve(name);
      }),
    );
  };
  return { events, call, end: (name: string) => ends.get(name)?.() };
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe("calls to a CSI driver", () => {
  test("about one volume are made one after the other, about two side by side", async () => {
    const calls = new VolumeCalls(never.signal);
    const { events, call, end } = driver();
    const all = [
      calls.run("a", call("stage a"), never),
      calls.run("a", call("publish a"), never),
      calls.run("b", call("stage b"), never),
    ];
    await turn();
    assert.deepEqual(events, ["begin stage a", "begin stage b"]);
    end("stage a");
    await turn();
    assert.deepEqual(events.slice(2), ["end stage a", "begin publish a"]);
    end("publish a");
    end("stage b");
    assert.deepEqual(await Promise.all(all), ["stage a", "publish a", "stage b"]);
    await turn();
    assert.equal(calls.size, 0);
  });

  test("go on when their caller gives up, and the next about the volume waits for them", async () => {
    const calls = new VolumeCalls(never.signal);
    const { events, call, end } = driver();
    const stop = new AbortController();
    const published = calls.run("a", call("publish"), stop);
    await turn();
    stop.abort(new Error("pod is gone"));
    await assert.rejects(published, /pod is gone/);
    const undone = calls.run("a", call("unpublish"), never);
    await turn();
    assert.deepEqual(events, ["begin publish"]);
    end("publish");
    await turn();
    end("unpublish");
    assert.equal(await undone, "unpublish");
  });

  test("whose caller gives up before their turn are not made", async () => {
    const calls = new VolumeCalls(never.signal);
    const { events, call, end } = driver();
    const first = calls.run("a", call("stage"), never);
    const stop = new AbortController();
    const second = calls.run("a", call("publish"), stop);
    await turn();
    stop.abort(new Error("enough"));
    await assert.rejects(second, /enough/);
    end("stage");
    await first;
    await turn();
    assert.deepEqual(events, ["begin stage", "end stage"]);
  });

  test("that fail let the next begin", async () => {
    const calls = new VolumeCalls(never.signal);
    await assert.rejects(
      calls.run("a", () => Promise.reject(new Error("no")), never),
      /no/,
    );
    assert.equal(await calls.run("a", () => Promise.resolve(1), never), 1);
  });

  test("are cut when the agent stops", async () => {
    const stop = manyListeners();
    const calls = new VolumeCalls(stop.signal);
    let cut = false;
    void calls
      .run(
        "a",
        ({ signal }) => new Promise((_, reject) => signal.addEventListener("abort", () => reject(new Error("cut")))),
        never,
      )
      .catch(() => (cut = true));
    await turn();
    stop.abort();
    await turn();
    assert.equal(cut, true);
  });
});
