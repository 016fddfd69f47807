import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { countCpu } from "../../../test/support/cpu-time.ts";
import { OomParser } from "./parse-oom.ts";

const POD = "/kubepods/burstable/pod1b-2c/0123456789ab";
const tail = "total-vm:104mB, anon-rss:99968kB, file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:236kB oom_score_adj:975";

const rows: { name: string; lines: string[]; want: object[] }[] = [
  {
    name: "a cgroup at its limit",
    lines: [
      "stress invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=975",
      `oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=x,mems_allowed=0,oom_memcg=/kubepods/burstable/pod1b-2c,task_memcg=${POD},task=stress,pid=4711,uid=0`,
      `Memory cgroup out of memory: Killed process 4711 (stress) ${tail}`,
    ],
    want: [{ isSystem: false, cgroup: POD, process: "stress", pid: 4711 }],
  },
  {
    name: "a machine without memory",
    lines: [
      "oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,task_memcg=/user.slice,task=hog,pid=5,uid=1000",
      `Out of memory: Killed process 5 (hog) ${tail}`,
    ],
    want: [{ isSystem: true, cgroup: "/user.slice", process: "hog", pid: 5 }],
  },
  {
    name: "a group that is killed as a whole is one kill",
    lines: [
      `oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=x,mems_allowed=0,oom_memcg=${POD},task_memcg=${POD},task=a,pid=1,uid=0`,
      `Memory cgroup out of memory: Killed process 1 (a) ${tail}`,
      `Tasks in ${POD} are going to be killed due to memory.oom.group set`,
      `Memory cgroup out of memory: Killed process 2 (b) ${tail}`,
    ],
    want: [{ isSystem: false, cgroup: POD, process: "a", pid: 1 }],
  },
  {
    name: "a name that looks like a field",
    lines: [
      `oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=x,mems_allowed=0,oom_memcg=${POD},task_memcg=${POD},task=a,pid=1,uid=0,pid=77,uid=0`,
    ],
    want: [{ isSystem: false, cgroup: POD, process: "a,pid=1,uid=0", pid: 77 }],
  },
  {
    name: "a name that looks like the field before it",
    lines: [
      `oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=x,mems_allowed=0,oom_memcg=${POD},task_memcg=${POD},task=x,task=y,pid=77,uid=0`,
    ],
    want: [{ isSystem: false, cgroup: POD, process: "x,task=y", pid: 77 }],
  },
  {
    name: "a cgroup that looks like fields",
    lines: [
      `oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=x,mems_allowed=0,oom_memcg=/a,task_memcg=/b,global_oom,task_memcg=${POD},task=,task_memcg=/,pid=77,uid=0`,
    ],
    want: [{ isSystem: false, cgroup: POD, process: ",task_memcg=/", pid: 77 }],
  },
  {
    name: "an old kernel",
    lines: [
      "Memory cgroup out of memory: Kill process 9 (stress) score 1974 or sacrifice child",
      "Out of memory: Kill process 10 (a (b) score 3 or sacrifice child",
    ],
    want: [
      { isSystem: false, cgroup: "", process: "stress", pid: 9 },
      { isSystem: true, cgroup: "", process: "a (b", pid: 10 },
    ],
  },
  { name: "other messages", lines: ["oom_reaper: reaped process 4711 (stress)", "", "veth1: link up"], want: [] },
];

describe("kills in the kernel's messages", () => {
  for (const { name, lines, want } of rows) {
    test(name, () => {
      const parser = new OomParser();
      assert.deepEqual(
        lines.map((line) => parser.parse(line)).filter((kill) => kill !== undefined),
        want,
      );
    });
  }
});

test("a message made of names of fields takes no time", () => {
  const cpuMs = countCpu();
  const text = `oom-kill:constraint=X,${"oom_memcg=,task_memcg=,task=".repeat(200)}`;
  assert.equal(new OomParser().parse(text), undefined);
  assert.ok(cpuMs() < 1000, `${cpuMs()} ms`);
});

test("what only looks like a summary is none", () => {
  const fields = "nodemask=(null),oom_memcg=/a,task_memcg=/a/b,task=x,pid=7,uid=0";
  for (const text of [
    `hog[7]: oom-kill:constraint=X,${fields}`,
    `x,${fields}`,
    "oom-kill:constraint=X,task_memcg=/a/b,pid=7,uid=0",
    "oom-kill:constraint=X,task=x,pid=7,uid=0",
    "oom-kill:constraint=X,pid=7,uid=0",
    `oom-kill:constraint=X,${fields} `,
  ])
    assert.equal(new OomParser().parse(text), undefined, text);
  assert.equal(new OomParser().parse(`oom-kill:constraint=X,${fields}`)?.pid, 7);
});
