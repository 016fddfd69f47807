import { type Abortable, manyListeners, TimeLimitError } from "../../lib/abort.ts";
import { orAborted } from "../../lib/or-aborted.ts";
import type { VolumeHost } from "../kind.ts";
import { type FlexAnswer, type FlexCapabilities, NotSupportedError, parseAnswer } from "./driver-answer.ts";

/** The commands of the protocol. */
export type FlexCommand =
  | "init"
  | "getvolumename"
  | "attach"
  | "detach"
  | "isattached"
  | "waitforattach"
  | "mountdevice"
  | "unmountdevice"
  | "mount"
  | "unmount"
  | "expandvolume"
  | "expandfs";

/** Time limits in milliseconds: a driver that takes longer is killed with all that it started. */
const CALL_MS = 120_000;
/** To wait for a device, to make a filesystem, to grow one: on a slow disk that takes long. */
const LONG_MS = 600_000;
const LONG: ReadonlySet<FlexCommand> = new Set(["attach", "waitforattach", "mountdevice", "expandvolume", "expandfs"]);

/** What is asked of a driver. */
export interface FlexCall {
  readonly command: FlexCommand;
  /** What follows the command: paths, and options as JSON. */
  readonly args?: readonly string[];
  /** Texts among them that must never be shown. */
  readonly secrets?: readonly string[];
}

/** A driver: a program that is run for each call. */
export class FlexDriver {
  /** Commands that it was found not to have. */
  private readonly missing = new Set<FlexCommand>();
  private found: Promise<FlexCapabilities> | undefined;

  constructor(
    /** `vendor/driver`. */
    readonly name: string,
    private readonly executable: string,
    private readonly host: Pick<VolumeHost, "run">,
  ) {}

  /** Initializes the driver once; one that fails is initialized again at the next call. */
  async capabilities(options: Abortable): Promise<FlexCapabilities> {
    this.found ??= this.initialize();
    return orAborted(this.found, options.signal);
  }

  /** For all pods that wait for it: one of them that goes does not end it. */
  private async initialize(): Promise<FlexCapabilities> {
    try {
      return (await this.call({ command: "init" }, manyListeners())).capabilities;
    } catch (error) {
      this.found = undefined;
      throw error;
    }
  }

  /** Rejects with a `NotSupportedError` if the driver does not have the command. */
  async call({ command, args = [], secrets = [] }: FlexCall, { signal }: Abortable): Promise<FlexAnswer> {
    if (this.missing.has(command)) throw new NotSupportedError();
    const timeoutMs = LONG.has(command) ? LONG_MS : CALL_MS;
    try {
      const result = await this.host.run([this.executable, command, ...args], { signal, timeoutMs });
      return parseAnswer(command, result, secrets);
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof NotSupportedError) this.missing.add(command);
      if (!(error instanceof TimeLimitError)) throw error;
      const words = `${command} command failed: driver ${this.name} did not answer within ${timeoutMs / 1000} s and was killed`;
      throw new Error(words, { cause: error });
    }
  }

  /** The answer, or undefined if the driver does not have the command. */
  async callIfSupported(call: FlexCall, options: Abortable): Promise<FlexAnswer | undefined> {
    try {
      return await this.call(call, options);
    } catch (error) {
      if (error instanceof NotSupportedError) return undefined;
      throw error;
    }
  }
}
