import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { observed, WEB, WEB_OBSERVED } from "../../test/support/api-deps.ts";
import type { ObservedPod } from "../model/observed.ts";
import { PodStreams, StreamError } from "./streams.ts";

const NOTHING: ObservedPod = { ...WEB_OBSERVED, sandboxes: [], containers: [] };
const sandboxOf = (id: string, state: "ready" | "notReady") =>
  ({ id, attempt: 0, state, createdAt: 1, hostNetwork: false, ips: [] }) as const;
const options = { signal: new AbortController().signal };
const streams = { stdin: false, stdout: true, stderr: true };

/** Streams over what was read last and what the runtime has now; `reads` counts the questions to the runtime. */
function over(known: ObservedPod | undefined, now: ObservedPod) {
  const counted = { reads: 0 };
  const call = async (id: string): Promise<string> => `http://runtime/${id}`;
  const read = async (): Promise<ObservedPod> => {
    counted.reads++;
    return now;
  };
  const runtime = { exec: call, attach: call, portForward: call };
  return { counted, opened: new PodStreams({ runtime, observer: { get: () => known, read } }) };
}

const running: ObservedPod = {
  ...NOTHING,
  sandboxes: [sandboxOf("s1", "ready")],
  containers: [observed("c2", "running"), observed("c1", "exited")],
};
const exited: ObservedPod = {
  ...NOTHING,
  sandboxes: [sandboxOf("s1", "notReady")],
  containers: [observed("c1", "exited")],
};
const CONTAINER = running.containers[0]?.name ?? "";

const cases = [
  { name: "what was observed is not asked for again", known: running, now: NOTHING, id: "c2", sandbox: "s1", reads: 0 },
  {
    name: "right after a start of the agent the runtime is asked",
    known: undefined,
    now: running,
    id: "c2",
    sandbox: "s1",
    reads: 1,
  },
  {
    name: "a container that was restarted meanwhile is found",
    known: exited,
    now: running,
    id: "c2",
    sandbox: "s1",
    reads: 1,
  },
  {
    name: "of a container that does not run the newest instance is named",
    known: exited,
    now: exited,
    id: "c1",
    sandbox: undefined,
    reads: 1,
  },
  {
    name: "a pod without containers has nothing to connect to",
    known: NOTHING,
    now: NOTHING,
    id: undefined,
    sandbox: undefined,
    reads: 1,
  },
] as const;

describe("PodStreams", () => {
  for (const { name, known, now, id, sandbox, reads } of cases) {
    it(name, async () => {
      const { counted, opened } = over(known, now);
      const calls = [
        { url: () => opened.exec(WEB, { ...streams, tty: false, container: CONTAINER, command: ["ls"] }, options), id },
        { url: () => opened.attach(WEB, { ...streams, container: CONTAINER }, options), id },
        { url: () => opened.portForward(WEB, [80], options), id: sandbox },
      ];
      for (const [index, { url, id: wanted }] of calls.entries()) {
        if (wanted === undefined) await assert.rejects(url(), StreamError);
        else assert.equal(await url(), `http://runtime/${wanted}`);
        assert.equal(counted.reads, reads * (index + 1));
      }
    });
  }
});
