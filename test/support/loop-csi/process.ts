import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Program } from "../../integration/support/program.ts";
import { until } from "../../integration/support/until.ts";
import { whyNoLoop } from "../loop-filesystem.ts";
import type { LoopBehaviour, LoopDriverOptions } from "./driver.ts";
import { mountedAt } from "./volumes.ts";

/** One call as the driver noted it. */
export interface LoopCall {
  /** `NodeStageVolume` once it was answered, `NodeStageVolume began` and `NodeStageVolume worked` before. */
  readonly method: string;
  readonly volumeId?: string;
  readonly code?: number;
  /** Calls of its kind for its volume at that moment. */
  readonly inFlight?: number;
  readonly targetPath?: string;
  readonly stagingTargetPath?: string;
}

/** Why the driver cannot run here, or undefined when it can. */
export function whyNoLoopCsi(): string | undefined {
  if (spawnSync("mkfs.xfs", ["-V"]).error !== undefined) return "not installed: xfsprogs";
  return whyNoLoop();
}

/** Starts, kills and restarts the driver of `driver.ts`, and reads what it was asked. */
export class LoopCsiProcess {
  private program: Program | undefined;
  readonly options: LoopDriverOptions;

  constructor(
    readonly name: string,
    /** `root`: that of the agent; without one the driver does not register itself. */
    private readonly place: { readonly dir: string; readonly root?: string },
  ) {
    const { dir, root } = place;
    this.options = {
      name,
      socket: join(root === undefined ? dir : join(root, "plugins", name), "csi.sock"),
      ...(root !== undefined && { registration: join(root, "plugins_registry", `${name}-reg.sock`) }),
      storage: join(dir, "volumes"),
      calls: join(dir, "calls"),
      behaviour: join(dir, "behaviour"),
    };
  }

  get isOver(): boolean {
    return this.program?.isOver !== false;
  }

  /** What it does from now on, also after a restart. */
  behave(behaviour: LoopBehaviour): void {
    const path = join(this.place.dir, "behaviour.new");
    writeFileSync(path, JSON.stringify(behaviour));
    renameSync(path, this.options.behaviour);
  }

  /** Makes a volume as a provisioner would; sparse, and blank until it is first staged. */
  create(id: string, bytes: number): void {
    const { storage } = this.options;
    spawnSync("mkdir", ["-p", storage]);
    spawnSync("truncate", ["-s", String(bytes), join(storage, `${id}.img`)]);
    writeFileSync(join(storage, `${id}.json`), JSON.stringify({ id, name: id, bytes }));
  }

  calls(): readonly LoopCall[] {
    const { calls } = this.options;
    if (!existsSync(calls)) return [];
    const lines = readFileSync(calls, "utf8").split("\n");
    // The last line may not be whole yet.
    return lines.slice(0, -1).map((line) => JSON.parse(line) as LoopCall);
  }

  asked(method: string, volumeId?: string): readonly LoopCall[] {
    return this.calls().filter(
      (call) => call.method === method && (volumeId === undefined || call.volumeId === volumeId),
    );
  }

  async start(): Promise<void> {
    const before = this.asked("started").length;
    const program = join(import.meta.dirname, "driver.ts");
    this.program = new Program([process.execPath, "--import", "tsx", program, JSON.stringify(this.options)]);
    const seen = (): unknown => this.program?.stderr.slice(-2000);
    await until("the driver serves", () => this.asked("started").length > before, { seen });
  }

  /** Ends it; its mounts stay. */
  async kill(): Promise<void> {
    await this.program?.end("SIGKILL");
  }

  /** Gives up the loop devices of whatever is below a directory, once nothing has them mounted any more. */
  static releaseLoops(dir: string): void {
    const { stdout } = spawnSync("losetup", ["--list", "--noheadings", "--output", "NAME,BACK-FILE"], {
      encoding: "utf8",
    });
    for (const [name = "", file = ""] of stdout.split("\n").map((line) => line.split(/\s+/))) {
      if (file.startsWith(`${dir}/`)) spawnSync("losetup", ["--detach", name]);
    }
  }

  /** True if something is mounted at the path. */
  isMounted(path: string): boolean {
    return mountedAt(path) !== undefined;
  }
}
