import assert from "node:assert/strict";
import type { VolumeHost } from "../../src/volumes/index.ts";
import { VolumeMachine } from "./volume-machine.ts";
import type { VolumeScene } from "./volumes.ts";

/** The calls that change something of the machine. */
const WRITES = new Set([
  ..."makeDir makeFile mountTmpfs bindMount mountDevice mountByCommand bindByCommand".split(" "),
  ..."unmount unmountByCommand removeDir removeTree removeEmptyTree removeFile replaceFile symlink run".split(" "),
  ..."lockDevice unlockDevice".split(" "),
]);

/** A machine on which agents are killed after a number of calls that change something. */
export class DoomedMachine extends VolumeMachine {
  callsLeft = Number.POSITIVE_INFINITY;
  /** The number of kills: an agent of an earlier life does nothing any more. */
  private lives = 0;

  override asHost(): VolumeHost {
    const life = this.lives;
    return new Proxy<VolumeHost>(this, {
      get: (machine, name) => {
        // reason: what is not a method is not part of a host
        const method = Reflect.get(machine, name) as (...args: unknown[]) => Promise<unknown>;
        return async (...args: unknown[]) => {
          const isWrite = WRITES.has(String(name));
          if (life !== this.lives || (isWrite && this.callsLeft-- <= 0)) throw new Error("killed");
          return method.apply(machine, args);
        };
      },
    });
  }

  /** Ends all agents that there are. */
  kill(): void {
    this.lives++;
    this.callsLeft = Number.POSITIVE_INFINITY;
  }
}

/** What happens before the kill, what is killed, and what the next agent does. */
export interface KillPlan<S extends VolumeScene> {
  scene(machine: DoomedMachine): S;
  before?(scene: S): Promise<void>;
  work(scene: S): Promise<unknown>;
  next(scene: S, round: string): Promise<void>;
}

/** Kills the agent after each call of `work` in turn and has a new one go on. Answers how many calls there are. */
export async function killedAfterEveryCall<S extends VolumeScene>(plan: KillPlan<S>): Promise<number> {
  for (let calls = 0; ; calls++) {
    const machine = new DoomedMachine();
    const scene = plan.scene(machine);
    await plan.before?.(scene);
    machine.callsLeft = calls;
    await plan.work(scene).catch(() => undefined);
    const isWhole = machine.callsLeft >= 0;
    machine.kill();
    scene.volumes = scene.newAgent();
    await plan.next(scene, `killed after ${calls} calls`);
    if (isWhole) return calls;
    assert.ok(calls < 200, "it ends");
  }
}
