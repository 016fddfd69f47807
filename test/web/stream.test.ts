import assert from "node:assert/strict";
import { test } from "node:test";

/** Written for a browser's globals, which the types of the tests do not have. */
const MODULE = String(new URL("../../web/stream.ts", import.meta.url));
type Follow = (path: string, hooks: { line(line: unknown): void; state(state: string): void }) => () => void;

/** Lets everything run that waits for nothing. */
const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** A page of a browser whose timers never come. */
function openPage() {
  const page = Object.assign(new EventTarget(), { hidden: false });
  const opened: ReadableStreamDefaultController[] = [];
  const timers = { setTimeout: () => 1, clearTimeout: () => undefined };
  Object.assign(globalThis, { document: page, window: timers, location: { hash: "" } });
  globalThis.fetch = async () =>
    new Response(new ReadableStream({ start: (controller) => void opened.push(controller) }));
  const show = async (isShown: boolean): Promise<void> => {
    page.hidden = !isShown;
    page.dispatchEvent(new Event("visibilitychange"));
    await settle();
  };
  return { opened, show };
}

test("a stream that ends while the page is hidden is opened again as soon as it is seen", async () => {
  const { opened, show } = openPage();
  const { follow } = (await import(MODULE)) as { follow: Follow };
  const states: string[] = [];
  const end = follow("stream", { line: () => undefined, state: (state) => states.push(state) });
  await settle();
  assert.equal(opened.length, 1);

  await show(false);
  opened[0]?.close();
  await settle();
  assert.equal(opened.length, 1, "a hidden page asks for nothing");

  await show(true);
  assert.equal(opened.length, 2);
  assert.deepEqual(states, ["connecting", "connecting"]);
  end();
});

test("a lost stream is opened again when the page was hidden before its next try", async () => {
  const { opened, show } = openPage();
  const { follow } = (await import(MODULE)) as { follow: Follow };
  const states: string[] = [];
  const end = follow("stream", { line: () => undefined, state: (state) => states.push(state) });
  await settle();
  opened[0]?.error(new Error("connection reset"));
  await settle();
  await show(false);
  await show(true);
  assert.equal(opened.length, 2);
  assert.deepEqual(states, ["connecting", "lost", "connecting"]);
  end();
});
