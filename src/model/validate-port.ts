import type { ContainerPort, PodSpec } from "./generated/types.ts";
import { isIpAddress } from "./ip.ts";
import { isPortName } from "./names.ts";
import type { Problems } from "./problems.ts";

const PORT_RANGE = [1, 65_535] as const;

/** Checks the ports of all containers, and that no two of them use the same host port. */
export function checkPorts(spec: PodSpec, problems: Problems): void {
  const hostPorts = new Map<string, string>();
  for (const kind of ["containers", "initContainers"] as const) {
    for (const [index, container] of (spec[kind] ?? []).entries()) {
      const names = new Set<string>();
      for (const [at, port] of (container.ports ?? []).entries()) {
        const path = `spec.${kind}[${index}].ports[${at}]`;
        checkPort(path, port, { problems, names });
        if (spec.hostNetwork && port.hostPort !== undefined && port.hostPort !== port.containerPort) {
          const fix = "make both numbers the same, or leave hostPort out";
          problems.add(`${path}.hostPort`, port.hostPort, {
            message: "must be containerPort on the host network",
            fix,
          });
        }
        // Init containers run before the others, so their host ports cannot collide with them.
        if (kind === "containers") checkHostPort(path, port, { problems, hostPorts });
      }
    }
  }
}

function checkPort(path: string, port: ContainerPort, context: { problems: Problems; names: Set<string> }): void {
  const { problems, names } = context;
  problems.range(`${path}.containerPort`, port.containerPort ?? 0, PORT_RANGE);
  if (port.hostPort !== 0) problems.range(`${path}.hostPort`, port.hostPort, PORT_RANGE);
  problems.oneOf(`${path}.protocol`, port.protocol, ["TCP", "UDP", "SCTP"]);
  if (port.hostIP && !isIpAddress(port.hostIP)) {
    problems.add(`${path}.hostIP`, port.hostIP, {
      message: "is not an IP address",
      fix: "write it like 127.0.0.1 or ::1",
    });
  }
  if (!port.name) return;
  if (!isPortName(port.name)) {
    const fix = "use at most 15 lower-case letters, digits and single -, with at least one letter";
    problems.add(`${path}.name`, port.name, { message: "is not a valid port name", fix });
  } else if (names.has(port.name)) {
    problems.add(`${path}.name`, port.name, { message: "is used twice", fix: "give each port its own name" });
  }
  names.add(port.name);
}

interface HostPortContext {
  readonly problems: Problems;
  readonly hostPorts: Map<string, string>;
}

function checkHostPort(path: string, port: ContainerPort, { problems, hostPorts }: HostPortContext): void {
  if (!port.hostPort) return;
  const key = `${port.protocol ?? "TCP"}/${port.hostIP ?? ""}/${port.hostPort}`;
  const other = hostPorts.get(key);
  if (other !== undefined) {
    const fix = `${other} uses it too: choose another port`;
    problems.add(`${path}.hostPort`, port.hostPort, { message: "is used twice", fix });
  }
  hostPorts.set(key, path);
}
