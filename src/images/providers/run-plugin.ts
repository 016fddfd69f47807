import { join } from "node:path";
import type { ExecOptions, ExecResult } from "../../adapters/host/exec.ts";
import { type Abortable, TimeLimitError } from "../../lib/abort.ts";
import type { Clock } from "../../lib/clock.ts";
import { messageOf } from "../../lib/errors.ts";
import { Lane } from "../../lib/lane.ts";
import { fixed } from "../../lib/live.ts";
import { decodeResponse, encodeRequest, type ProviderRequest, type ProviderResponse } from "./exec-protocol.ts";
import type { ProviderConfig } from "./provider-config.ts";
import { passwordsIn, redact } from "./redact.ts";

/** As in Kubernetes, in milliseconds. */
const TIME_LIMIT_MS = 60_000;
/** Bytes of a response; a plugin that writes more is killed. */
const MOST_OUTPUT = 1024 * 1024;
/** Bytes of a plugin's standard error in an error message. */
const SHOWN_BYTES = 1000;
/** Processes of one plugin at a time. */
const PARALLEL = 10;

export interface PluginRunnerDeps {
  readonly clock: Clock;
  exec(command: readonly [string, ...string[]], options: ExecOptions): Promise<ExecResult>;
  /** Called after each run. */
  ran?(plugin: string, tookMs: number, isOk: boolean): void;
}

/** Runs credential provider plugins: in bounded time and number, and with errors that have no secrets. */
export class PluginRunner {
  private readonly lanes = new Map<string, Lane>();

  constructor(
    private readonly deps: PluginRunnerDeps,
    private readonly options: Abortable & { readonly binDir: string },
  ) {}

  async run(config: ProviderConfig, request: ProviderRequest): Promise<ProviderResponse> {
    const { stdout } = await this.lane(config.name).run(() => this.exec(config, request), this.options);
    try {
      return decodeResponse(stdout, config.apiVersion);
    } catch (error) {
      throw new Error(`credential provider plugin ${config.name}: ${messageOf(error)}`);
    }
  }

  private async exec(config: ProviderConfig, request: ProviderRequest): Promise<ExecResult> {
    const { clock } = this.deps;
    const { name, args, env } = config;
    const began = clock.now().mono;
    let isOk = false;
    try {
      const result = await this.deps.exec([join(this.options.binDir, name), ...args], {
        signal: this.options.signal,
        timeoutMs: TIME_LIMIT_MS,
        input: encodeRequest(request),
        maxOutputBytes: MOST_OUTPUT,
        env,
        isContained: true,
      });
      if (result.code !== 0 || result.isCut === true) throw this.failure(config, request, result);
      isOk = true;
      return result;
    } catch (error) {
      if (error instanceof TimeLimitError) throw failed(name, `did not end within ${TIME_LIMIT_MS / 1000} s`);
      throw error;
    } finally {
      this.deps.ran?.(name, clock.now().mono - began, isOk);
    }
  }

  private failure({ name, env }: ProviderConfig, request: ProviderRequest, result: ExecResult): Error {
    if (result.isCut === true) return failed(name, `wrote more than ${MOST_OUTPUT} bytes`);
    const secrets = [request.serviceAccountToken ?? "", ...Object.values(env), ...passwordsIn(result.stdout)];
    const said = redact(result.stderr, secrets, SHOWN_BYTES);
    const how = result.code === undefined ? "was killed" : `exited with code ${result.code}`;
    return failed(name, said === "" ? how : `${how}: ${said}`);
  }

  private lane(name: string): Lane {
    const lane = this.lanes.get(name) ?? new Lane(fixed(PARALLEL), this.options);
    this.lanes.set(name, lane);
    return lane;
  }
}

function failed(name: string, why: string): Error {
  return new Error(`credential provider plugin ${name} ${why}`);
}
