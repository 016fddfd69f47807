import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { ControllerBench } from "../../test/support/controllers.ts";
import { CONFIG_MAPS } from "../adapters/kubeapi/index.ts";
import { type Clock, FakeClock } from "../lib/clock.ts";
import { silent } from "../lib/log.ts";
import { keyOf } from "./object-index.ts";
import { Reconciler } from "./reconciler.ts";

async function bench(t: TestContext) {
  const seen: string[] = [];
  let isFixed = false;
  const made = await ControllerBench.start((deps) => {
    const reconciler = new Reconciler(deps, {
      name: "test",
      reconcile: async (key) => {
        if (key.endsWith("/bad") && !isFixed) throw new TypeError("cannot read what is not there");
        seen.push(key);
        return undefined;
      },
    });
    return {
      name: "test",
      run: (signal) => {
        deps.informers.of(CONFIG_MAPS).onChange(
          ({ object }) => {
            if (object.metadata.name === "worse") throw new TypeError("nor this");
            if (object.metadata.name !== "kube-root-ca.crt") reconciler.wake(keyOf(object));
          },
          { signal },
        );
        return reconciler.run(signal);
      },
    };
  });
  t.after(() => made.close());
  const add = async (name: string): Promise<void> => {
    await made.api.create(CONFIG_MAPS, { namespace: "default", object: { metadata: { name } } }, made.signal);
    await made.settle();
  };
  const fix = (): void => {
    isFixed = true;
  };
  return { made, seen, add, fix };
}

test("an object that brings up a bug is retried; the others and the agent go on", async (t) => {
  const { made, seen, add, fix } = await bench(t);
  await add("bad");
  await add("worse");
  await add("good");
  assert.deepEqual(seen, ["default/good"]);
  assert.deepEqual(
    made.bugs.splice(0).map((error) => (error as Error).message),
    ["cannot read what is not there", "nor this"],
  );
  fix();
  await made.advance(1000);
  assert.deepEqual(seen, ["default/good", "default/bad"]);
});

test("thousands of keys that are woken at once leave turns to others", async () => {
  let [turns, done, mono] = [0, 0, 0];
  const still = new FakeClock();
  const clock: Clock = {
    now: () => ({ wall: 0, mono }),
    after: (ms, fn) => still.after(ms, fn),
    sleep: (ms, options) => still.sleep(ms, options),
  };
  const reconciler = new Reconciler(
    { clock, log: silent },
    {
      name: "test",
      reconcile: async () => {
        await Promise.resolve();
        // As if each took a millisecond.
        mono++;
        done++;
        return undefined;
      },
    },
  );
  for (let key = 0; key < 2000; key++) reconciler.wake(`default/${key}`);
  while (done < 2000) {
    turns++;
    await new Promise((resolve) => setImmediate(resolve));
  }
  assert.ok(turns > 50, `${turns} turns`);
});
