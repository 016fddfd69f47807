import { RuntimeError } from "../runtime/port.ts";

/** The kernel's limit for a unix socket's path (sun_path less its closing zero). */
const LONGEST_SOCKET_PATH = 107;

/** The socket's path of an endpoint: `unix:///path`, `unix:/path` or the bare absolute path. Anything else is refused. */
export function socketPath(endpoint: string): string {
  const path = endpoint.replace(/^unix:(\/\/)?/, "");
  if (!path.startsWith("/")) {
    throw new RuntimeError("InvalidArgument", `endpoint ${JSON.stringify(endpoint)} is no unix socket (unix:///path)`);
  }
  if (Buffer.byteLength(path) > LONGEST_SOCKET_PATH) {
    throw new RuntimeError("InvalidArgument", `socket path is longer than ${LONGEST_SOCKET_PATH} bytes: ${path}`);
  }
  return path;
}
