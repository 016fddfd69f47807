import assert from "node:assert/strict";
import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ConfigReport, ReportedSetting } from "../../../src/config/index.ts";
import { freePort } from "../../support/free-port.ts";
import { KUBELET, Program } from "./program.ts";
import type { Site } from "./site.ts";
import { until } from "./until.ts";

/** How a configuration file begins. */
export const HEAD = { apiVersion: "kubelet.config.k8s.io/v1beta1", kind: "KubeletConfiguration" };

/** A plain agent on the runtime that `kubelet up` left running. */
export class PlainAgent {
  readonly dir = mkdtempSync(join(tmpdir(), "c-"));
  readonly file = join(this.dir, "kubelet.json");
  program: Program | undefined;
  private settings: Record<string, unknown> = {};
  private sequence = 0;

  constructor(readonly site: Site) {}

  async start(flags: readonly string[] = []): Promise<Program> {
    const program = new Program([
      KUBELET,
      `--config=${this.file}`,
      `--root-dir=${this.site.state}/kubelet`,
      `--cert-dir=${this.site.state}/kubelet/pki`,
      `--port=${await freePort()}`,
      `--local-api-socket=${this.site.state}/kubelet.sock`,
      `--pod-logs-dir=${this.site.state}/log/pods`,
      `--cgroup-root=${this.site.layout.cgroupRoot}`,
      ...flags,
    ]);
    this.program = program;
    await this.site.answers(program);
    return program;
  }

  /** Puts a changed file in place by a rename. */
  set(changes: Record<string, unknown>): void {
    this.settings = { ...this.settings, ...changes };
    const next = `${this.file}.${++this.sequence}`;
    writeFileSync(next, JSON.stringify({ ...HEAD, ...this.settings }));
    renameSync(next, this.file);
  }

  report(): Promise<ConfigReport> {
    return this.site.ask<ConfigReport>("/v1/config");
  }

  async setting(field: string): Promise<ReportedSetting> {
    const found = (await this.report()).settings.find((setting) => setting.field === field);
    assert.ok(found, field);
    return found;
  }

  /** Changes the file and waits until the agent runs with it. */
  async change(field: string, value: unknown): Promise<void> {
    this.set({ [field]: value });
    await this.inForce(field, value);
  }

  async inForce(field: string, value: unknown): Promise<void> {
    const wanted = JSON.stringify(value);
    await until(`${field} is ${wanted}`, async () => JSON.stringify((await this.setting(field)).value) === wanted);
  }

  async kill(): Promise<void> {
    await this.program?.end("SIGKILL");
  }

  async close(): Promise<void> {
    await this.kill();
    rmSync(this.dir, { recursive: true, force: true });
  }
}
