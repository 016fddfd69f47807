import type { Abortable } from "../../lib/abort.ts";
import { messageOf } from "../../lib/errors.ts";
import type { ExecOptions, ExecResult } from "../host/index.ts";
import { isSameListing, type Listing, parseListing } from "./listing.ts";
import { type Forwarding, type ForwardingChange, type ForwardingTable, NetfilterError } from "./port.ts";
import type { TableOptions } from "./shape.ts";
import { TableImage } from "./table-image.ts";

/** Runs a program to its end; `LinuxHost` provides it. */
export interface CommandRunner {
  exec(file: string, args: readonly string[], options?: ExecOptions): Promise<ExecResult>;
}

/** A transaction takes milliseconds; one that takes this long hangs. */
const COMMAND_MS = 20_000;
/** Of a listing: some ten thousand services. */
const MAX_LISTING_BYTES = 64 * 1024 * 1024;

/** The table of nftables, written with the program `nft`. Calls must not overlap. */
export class NftTable implements ForwardingTable {
  private image: TableImage;

  constructor(
    private readonly host: CommandRunner,
    private readonly options: TableOptions,
  ) {
    this.image = new TableImage(options);
  }

  async replace(forwardings: readonly Forwarding[], options: Abortable): Promise<boolean> {
    const image = TableImage.of(this.options, forwardings);
    const there = await this.list(options);
    this.image = image;
    if (there !== undefined && isSameListing(there, image.listing)) return false;
    try {
      await this.write(image.whole(there), options);
    } catch (error) {
      if (there === undefined || !(error instanceof NetfilterError) || error.code === "Missing") throw error;
      // Something of its name is of another kind: nothing of it can stay.
      const { name } = this.options;
      await this.write(`delete table ip ${name}\n${image.whole(undefined)}`, options);
    }
    return true;
  }

  async update(change: ForwardingChange, options: Abortable): Promise<void> {
    const script = this.image.change(change);
    if (script !== "") await this.write(script, options);
  }

  async isIntact(options: Abortable): Promise<boolean> {
    const there = await this.list(options);
    return there !== undefined && isSameListing(there, this.image.listing);
  }

  private async write(script: string, options: Abortable): Promise<void> {
    const { code, stderr } = await this.nft(["-f", "-"], { ...options, input: script });
    if (code === 0) return;
    const isDamage = stderr.includes("No such file or directory") || stderr.includes("File exists");
    throw new NetfilterError(isDamage ? "Damaged" : "Refused", `write nftables: ${firstLine(stderr)}`);
  }

  private async list(options: Abortable): Promise<Listing | undefined> {
    const args = ["-j", "list", "table", "ip", this.options.name];
    const { code, stdout, stderr } = await this.nft(args, { ...options, maxOutputBytes: MAX_LISTING_BYTES });
    if (code === 0) return readListing(stdout);
    if (stderr.includes("No such file or directory")) return undefined;
    throw new NetfilterError("Refused", `list nftables: ${firstLine(stderr)}`);
  }

  private async nft(args: readonly string[], options: ExecOptions): Promise<ExecResult> {
    return runCommand(this.host, ["nft", ...args], options);
  }
}

function readListing(text: string): Listing {
  try {
    return parseListing(text);
  } catch (error) {
    throw new NetfilterError("Refused", `list nftables: unreadable output: ${messageOf(error)}`, { cause: error });
  }
}

/** Runs a program of netfilter; rejects with `Missing` if there is none. */
export async function runCommand(
  host: CommandRunner,
  [program, ...args]: readonly [string, ...string[]],
  options: ExecOptions,
): Promise<ExecResult> {
  try {
    return await host.exec(program, args, { timeoutMs: COMMAND_MS, ...options });
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw new NetfilterError("Missing", `run ${program}: ${messageOf(error)}`, { cause: error });
  }
}

/** The first line names the rule and the reason. */
export function firstLine(text: string): string {
  return text.trim().split("\n", 1)[0] ?? "";
}
