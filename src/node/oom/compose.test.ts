import assert from "node:assert/strict";
import { test } from "node:test";
import { observed, pod, sandbox, seen } from "../../../test/support/pods.ts";
import { recordKill } from "./compose.ts";
import { OomCounts } from "./oom-counts.ts";

const web = pod("web", "u1").container("main").build();
const ID = "0123456789abcdef";
const known = observed(web, [sandbox()], [seen({ name: "main" }, { id: ID })]);
const kill = { podUid: "u1", containerId: ID, process: "hog", pid: 5, cgroup: "/c", isSystem: false };

function scene() {
  const events: string[] = [];
  const oomKills = new OomCounts();
  const deps = {
    oomKills,
    observer: { get: (uid: string) => (uid === "u1" ? known : undefined) },
    journal: {
      of: ({ name }: { name: string }) => ({
        event: (_type: "Warning", reason: string, { message, container }: { message: string; container: string }) =>
          void events.push(`${name} ${container} ${reason}: ${message}`),
      }),
    },
  };
  return { deps, events, oomKills };
}

test("a kill is counted for its container, and an event with the reason", () => {
  const { deps, events, oomKills } = scene();
  recordKill(deps, kill);
  recordKill(deps, { ...kill, isSystem: true });
  assert.deepEqual(events, [
    "web main OOMKilling: Container main: the kernel killed process hog because its memory limit was reached",
    "web main OOMKilling: Container main: the kernel killed process hog because the node ran out of memory",
  ]);
  assert.equal(oomKills.of("u1", "main"), 2);
});

test("a kill in a container that the runtime does not know is not recorded", () => {
  const { deps, events } = scene();
  recordKill(deps, { ...kill, containerId: "ffffffffffff" });
  recordKill(deps, { ...kill, podUid: "u2" });
  assert.deepEqual(events, []);
});
