import type { Abortable } from "../../lib/abort.ts";
import { type CommandRunner, firstLine, runCommand } from "./nft-table.ts";
import { type ConnectionTable, type DatagramFlow, NetfilterError } from "./port.ts";

/** The kernel's table of connections, changed with the program `conntrack`. */
export class Conntrack implements ConnectionTable {
  constructor(private readonly host: CommandRunner) {}

  async forget({ address, port, target }: DatagramFlow, options: Abortable): Promise<void> {
    const args = [
      ...["-D", "-p", "udp", "--orig-port-dst", String(port)],
      ...(address === undefined ? [] : ["--orig-dst", address]),
      ...(target === undefined ? [] : ["--dst-nat", target.ip]),
    ];
    const { code, stderr } = await runCommand(this.host, ["conntrack", ...args], options);
    // Ends with 1 if there was no such connection.
    if (code === 0 || stderr.includes("0 flow entries")) return;
    throw new NetfilterError("Refused", `remove connections: ${firstLine(stderr)}`);
  }
}
