import { ProbeNetError } from "../../adapters/net/probe-error.ts";
import { resolvePort } from "../../model/container-port.ts";
import { failed, type ProbeHandler, SUCCESS, type Verdict } from "./handler.ts";

/** Opens a TCP connection; an accepted connection is a success. */
export const tcpSocket: ProbeHandler = {
  name: "tcpSocket",
  async run({ net }, probe, { target, signal }): Promise<Verdict> {
    if (probe.tcpSocket === undefined) throw new Error("tcp probe: action is not set");
    const port = resolvePort(probe.tcpSocket.port, target.container);
    const host = probe.tcpSocket.host || target.podIp;
    try {
      await net.tcp({ host, port }, { signal });
      return SUCCESS;
    } catch (error) {
      if (error instanceof ProbeNetError) return failed(error.message);
      throw error;
    }
  },
};
