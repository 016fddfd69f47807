import { DEMO_IMAGE } from "../../../src/adapters/embedded/index.ts";
import type { Container, Pod, PodSpec } from "../../../src/model/generated/types.ts";

/** A container of the demo image that runs a shell script. */
export function shell(name: string, script: string, more: Partial<Container> = {}): Container {
  return { name, image: DEMO_IMAGE, imagePullPolicy: "Never", command: ["/bin/sh", "-c", script], ...more };
}

/** Runs until it is told to stop, and then ends at once: the first process of a container gets TERM only if it asks. */
export const FOREVER = "trap 'exit 0' TERM; while :; do sleep 3600 & wait $!; done";

/** Shell words before `FOREVER`. */
export function forever(first = ""): string {
  return first === "" ? FOREVER : `${first}\n${FOREVER}`;
}

/** A pod as a manifest has it. */
export function manifest(name: string, spec: Partial<PodSpec> = {}, metadata: Partial<Pod["metadata"]> = {}): Pod {
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, ...metadata },
    spec: { terminationGracePeriodSeconds: 2, containers: [shell("main", FOREVER)], ...spec },
  };
}
