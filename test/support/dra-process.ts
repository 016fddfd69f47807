import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Program } from "../integration/support/program.ts";
import { until } from "../integration/support/until.ts";
import type { DraBehaviour, DraDriverOptions } from "./dra-driver.ts";

/** Starts, kills and restarts the driver of `dra-driver.ts`, and reads what it was asked. */
export class DraProcess {
  private program: Program | undefined;

  constructor(
    readonly name: string,
    private readonly place: { readonly dir: string; readonly root: string; readonly cdiDir: string },
  ) {
    this.behave({});
  }

  get isOver(): boolean {
    return this.program?.isOver !== false;
  }

  /** What it does from now on, also after a restart. */
  behave(behaviour: DraBehaviour): void {
    // The driver reads it at any time, and must not find half of it.
    const next = this.file("behaviour.new");
    writeFileSync(next, JSON.stringify(behaviour));
    renameSync(next, this.file("behaviour"));
  }

  calls(): string[] {
    const path = this.file("calls");
    return existsSync(path) ? readFileSync(path, "utf8").trim().split("\n") : [];
  }

  /** How often it was asked this. */
  asked(pattern: RegExp): number {
    return this.calls().filter((line) => pattern.test(line)).length;
  }

  start(service: DraDriverOptions["service"] = "v1.DRAPlugin"): void {
    const options: DraDriverOptions = {
      name: this.name,
      service,
      registration: join(this.place.root, "plugins_registry", `${this.name}-reg.sock`),
      endpoint: join(this.place.root, "plugins", this.name, "dra.sock"),
      cdiDir: this.place.cdiDir,
      behaviour: this.file("behaviour"),
      calls: this.file("calls"),
    };
    const program = join(import.meta.dirname, "dra-driver.ts");
    this.program = new Program([process.execPath, "--import", "tsx", program, JSON.stringify(options)]);
  }

  /** Starts it and waits until it was told that it is registered. */
  async register(service: DraDriverOptions["service"] = "v1.DRAPlugin"): Promise<void> {
    const before = this.asked(/^registered$/);
    this.start(service);
    await this.registered(before + 1);
  }

  async registered(times: number): Promise<void> {
    const seen = (): unknown => [this.calls(), this.program?.stderr.slice(-2000)];
    await until("the driver is registered", () => this.asked(/^registered$/) >= times, { seen });
  }

  async end(signal: NodeJS.Signals): Promise<void> {
    await this.program?.end(signal);
  }

  private file(name: string): string {
    return join(this.place.dir, `${this.name}.${name}`);
  }
}
