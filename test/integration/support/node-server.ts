import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Container, PodSpec } from "../../../src/model/generated/types.ts";
import { shell } from "./manifests.ts";

/** A pod's container that runs a script with the machine's own node: its image has none. */
export function nodePod(dir: string, script: string, more: Partial<Container> = {}): PodSpec {
  mkdirSync(dir, { recursive: true });
  const file = join(dir, "server.mjs");
  writeFileSync(file, script);
  const command = ["/bin/chroot", "/machine", process.execPath, file];
  const volumeMounts = [{ name: "machine", mountPath: "/machine" }];
  return {
    containers: [{ ...shell("main", ""), command, volumeMounts, ...more }],
    volumes: [{ name: "machine", hostPath: { path: "/" } }],
    terminationGracePeriodSeconds: 0,
  };
}

/** Answers gRPC's health checks as the files of its folder say: `service NAME` holds the status of a service. */
export const HEALTH_SERVER = `
import { readFileSync } from "node:fs";
import { createServer } from "node:http2";
import { join } from "node:path";

const statusOf = (service) => {
  try {
    return Number(readFileSync(join(import.meta.dirname, "service " + service), "utf8"));
  } catch {
    return undefined;
  }
};
const server = createServer();
server.on("stream", (stream, headers) => {
  const chunks = [];
  stream.on("data", (chunk) => chunks.push(chunk));
  stream.on("end", () => {
    const message = Buffer.concat(chunks).subarray(5);
    const service = message.length > 2 ? message.subarray(2, 2 + message[1]).toString() : "";
    const status = headers[":path"] === "/grpc.health.v1.Health/Check" ? statusOf(service) : undefined;
    stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
    stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": status === undefined ? "5" : "0" }));
    if (status === undefined) stream.end();
    else stream.end(Buffer.from([0, 0, 0, 0, 2, 0x08, status]));
  });
});
server.listen(9000, "0.0.0.0", () => console.log("serving"));
process.on("SIGTERM", () => process.exit(0));
`;

/** Sends each datagram back in capitals. */
export const DATAGRAM_SERVER = `
import { createSocket } from "node:dgram";

const socket = createSocket("udp4");
socket.on("message", (text, { address, port }) => socket.send(text.toString().toUpperCase(), port, address));
socket.bind(7000, "0.0.0.0", () => console.log("serving"));
process.on("SIGTERM", () => process.exit(0));
`;
