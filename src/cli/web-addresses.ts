import type { Pod } from "../model/generated/types.ts";

/** Addresses of running pods, for hints: their IP with each of their TCP ports. */
export function webAddresses(pods: readonly Pod[]): string[] {
  return pods.flatMap((pod) => {
    const ip = pod.status?.podIP;
    if (ip === undefined || pod.status?.phase !== "Running") return [];
    const host = ip.includes(":") ? `[${ip}]` : ip;
    const ports = pod.spec.containers.flatMap((container) => container.ports ?? []);
    return ports
      .filter(({ protocol = "TCP" }) => protocol === "TCP")
      .map(({ containerPort }) => `http://${host}:${containerPort}`);
  });
}
