import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { AbortedError, TimeLimitError } from "../../lib/abort.ts";
import type { ExecResult } from "./exec.ts";
import { HostError } from "./host-error.ts";
import { MountCommands } from "./mount-commands.ts";

const never = { signal: new AbortController().signal };

/** Commands that are answered by a script: an exit code, a time limit, or whatever else is thrown. */
class Commands {
  readonly ran: string[] = [];
  layers = 1;
  isElsewhere = false;
  readonly commands: MountCommands;

  constructor(private readonly answer: (line: string, commands: Commands) => number | Error) {
    this.commands = new MountCommands({
      run: async (command): Promise<ExecResult> => {
        const line = command.join(" ");
        this.ran.push(line);
        const answer = this.answer(line, this);
        if (answer instanceof Error) throw answer;
        return { code: answer, stdout: "", stderr: answer === 0 ? "" : "the words of the command\n" };
      },
      layersAt: () => this.layers,
      isElsewhere: () => this.isElsewhere,
      flagsAt: () => ["nosuid"],
    });
  }
}

describe("mounting by a command", () => {
  test("passes type and options, and guards the source", async () => {
    const { commands, ran } = new Commands(() => 0);
    await commands.mount({ source: "s:/e", target: "/t", type: "nfs", options: ["ro", "vers=4"] }, never);
    await commands.mount({ source: "/dev/x", target: "/t", type: "", options: [] }, never);
    assert.deepEqual(ran, ["mount -t nfs -o ro,vers=4 -- s:/e /t", "mount -- /dev/x /t"]);
    await assert.rejects(
      commands.mount({ source: "-o:/x", target: "/t", type: "nfs", options: [] }, never),
      /no source/,
    );
  });

  test("fails with the words of Kubernetes", async () => {
    const { commands } = new Commands(() => 32);
    await assert.rejects(commands.mount({ source: "s:/e", target: "/t", type: "nfs", options: ["ro"] }, never), {
      message:
        "mount failed: exit status 32\nMounting command: mount\nMounting arguments: -t nfs -o ro s:/e /t\nOutput: the words of the command",
    });
  });

  test("says that there was no answer", async () => {
    const { commands } = new Commands(() => new TimeLimitError(120_000));
    const failed = commands.mount({ source: "s:/e", target: "/t", type: "nfs", options: [] }, never);
    await assert.rejects(failed, (error) => error instanceof HostError && error.code === "Timeout");
    await assert.rejects(failed, /^HostError: mount failed: no answer within 120 s\n/);
  });

  test("an abort is no failure of the mount, also if a time limit outside caused it", async () => {
    for (const reason of [new AbortedError(), new TimeLimitError(5)]) {
      const abort = new AbortController();
      const { commands } = new Commands(() => {
        abort.abort(reason);
        return reason;
      });
      const options = { signal: abort.signal };
      const failed = commands.mount({ source: "s:/e", target: "/t", type: "nfs", options: [] }, options);
      await assert.rejects(failed, (error) => error === reason);
    }
  });

  test("a bind mount gets its flags by a remount, which gives again those it has", async () => {
    const { commands, ran } = new Commands(() => 0);
    await commands.bind({ source: "/a", target: "/b", options: [] }, never);
    await commands.bind({ source: "/a", target: "/b", options: ["ro"] }, never);
    assert.deepEqual(ran, [
      "mount -o bind -- /a /b",
      "mount -o bind -- /a /b",
      "mount -o bind,remount,ro,nosuid -- /a /b",
    ]);
  });

  test("a bind mount that cannot be made read-only does not stay", async () => {
    const { commands, ran } = new Commands((line, all) => {
      if (line.startsWith("umount")) all.layers = 0;
      return line.includes("remount") ? 32 : 0;
    });
    await assert.rejects(commands.bind({ source: "/a", target: "/b", options: ["ro"] }, never), /exit status 32/);
    assert.equal(ran.at(-1), "umount -- /b");
  });
});

describe("unmounting by a command", () => {
  const late = new TimeLimitError(1);
  const cases: readonly {
    readonly name: string;
    readonly mayForce?: boolean;
    /** What each command ends with, and whether the mount is gone after it. */
    readonly answers: readonly (readonly [number | Error, boolean])[];
    readonly ran: readonly string[];
    readonly fails?: RegExp;
  }[] = [
    { name: "once if it works", answers: [[0, true]], ran: ["umount -- /t"] },
    {
      name: "in use is not forced",
      mayForce: true,
      answers: [[32, false]],
      ran: ["umount -- /t"],
      fails: /^HostError: unmount \/t: the words of the command$/,
    },
    {
      name: "one of a server that hangs after the mount is gone is done: it only writes back",
      mayForce: true,
      answers: [[late, true]],
      ran: ["umount -- /t"],
    },
    {
      name: "one of a disk that hangs after the mount is gone is not done: the disk must not be taken away",
      answers: [[late, true]],
      ran: ["umount -- /t"],
      fails: /^HostError: unmount \/t: what is left of its data is still written back$/,
    },
    {
      name: "one that hangs fails where it must not be forced",
      answers: [[late, false]],
      ran: ["umount -- /t"],
      fails: /no answer within 60 s/,
    },
    {
      name: "one that hangs is forced",
      mayForce: true,
      answers: [
        [late, false],
        [0, true],
      ],
      ran: ["umount -- /t", "umount -f -- /t"],
    },
    {
      name: "one that cannot be forced is detached",
      mayForce: true,
      answers: [
        [late, false],
        [32, false],
        [late, true],
      ],
      ran: ["umount -- /t", "umount -f -- /t", "umount -l -- /t"],
    },
    {
      name: "one that stays whatever is tried fails",
      mayForce: true,
      answers: [
        [late, false],
        [late, false],
        [late, false],
      ],
      ran: ["umount -- /t", "umount -f -- /t", "umount -l -- /t"],
      fails: /no answer within 10 s/,
    },
  ];
  for (const { name, mayForce = false, answers, ran, fails } of cases) {
    test(name, async () => {
      const left = [...answers];
      const all = new Commands((_line, commands) => {
        const [answer, isGone] = left.shift() ?? [0, true];
        if (isGone) commands.layers = 0;
        return answer;
      });
      const done = all.commands.unmount("/t", { ...never, mayForce });
      await (fails === undefined ? done : assert.rejects(done, fails));
      assert.deepEqual(all.ran, ran);
    });
  }

  test("one that others have mounted as well is not forced, which would end what they do, but detached", async () => {
    const all = new Commands((line, commands) => {
      if (line.includes("-l")) commands.layers = 0;
      return late;
    });
    all.isElsewhere = true;
    await all.commands.unmount("/t", { ...never, mayForce: true });
    assert.deepEqual(all.ran, ["umount -- /t", "umount -l -- /t"]);
  });

  test("every layer goes, and nothing is run where nothing is mounted", async () => {
    const all = new Commands((_line, commands) => {
      commands.layers--;
      return 0;
    });
    all.layers = 3;
    await all.commands.unmount("/t", never);
    assert.equal(all.ran.length, 3);
    await all.commands.unmount("/t", never);
    assert.equal(all.ran.length, 3);
  });

  test("by force is done whether the mount goes or is in use, and fails only if there is no answer", async () => {
    for (const code of [0, 32]) {
      const all = new Commands(() => code);
      await all.commands.force("/t", never);
      assert.deepEqual(all.ran, ["umount -f -- /t"]);
    }
    const hanging = new Commands(() => late).commands.force("/t", never);
    await assert.rejects(hanging, /^HostError: unmount \/t: no answer within 10 s$/);
  });

  test("an abort ends it at once", async () => {
    const abort = new AbortController();
    const all = new Commands(() => {
      abort.abort(new AbortedError());
      return new AbortedError();
    });
    await assert.rejects(all.commands.unmount("/t", { signal: abort.signal, mayForce: true }), AbortedError);
    assert.equal(all.ran.length, 1);
  });
});
