import type { Pod, Volume, VolumeMount } from "../../../src/model/generated/types.ts";
import { FOREVER, manifest, shell } from "./manifests.ts";

/** What differs from one such pod to the next. */
export interface EveryKindOptions {
  /** A directory of the host that is the user's, with a directory `inner` in it. */
  readonly host: string;
  readonly name?: string;
  readonly uid: string;
  readonly note?: string;
}

/** A pod with a volume of every local kind; it reads the ConfigMap `settings` and the Secret `login`. */
export function everyKind({ host, name: podName = "every-kind", uid, note = "one" }: EveryKindOptions): Pod {
  const volumes: Volume[] = [
    { name: "disk", emptyDir: {} },
    { name: "memory", emptyDir: { medium: "Memory", sizeLimit: "8Mi" } },
    { name: "host", hostPath: { path: host, type: "Directory" } },
    {
      name: "config",
      configMap: {
        name: "settings",
        items: [
          { key: "colour", path: "deep/colour", mode: 0o600 },
          { key: "size", path: "size" },
        ],
      },
    },
    { name: "whole", configMap: { name: "settings" } },
    { name: "login", secret: { secretName: "login", defaultMode: 0o400 } },
    { name: "maybe", secret: { secretName: "not-there", optional: true } },
    {
      name: "self",
      downwardAPI: {
        items: [
          { path: "note", fieldRef: { fieldPath: "metadata.annotations['note']" } },
          { path: "cpu", resourceFieldRef: { containerName: "main", resource: "requests.cpu", divisor: "1m" } },
        ],
      },
    },
    {
      name: "mixed",
      projected: {
        sources: [
          { configMap: { name: "settings", items: [{ key: "size", path: "from/config" }] } },
          { secret: { name: "login", items: [{ key: "password", path: "from/secret" }] } },
          { downwardAPI: { items: [{ path: "from/self", fieldRef: { fieldPath: "metadata.name" } }] } },
        ],
      },
    },
  ];
  const volumeMounts: VolumeMount[] = [
    ...volumes.map(({ name }) => ({ name, mountPath: `/v/${name}` })),
    { name: "disk", mountPath: "/sub/dir", subPath: "a/b" },
    { name: "disk", mountPath: "/sub/expr", subPathExpr: "of-$(WHO)" },
    { name: "whole", mountPath: "/sub/file", subPath: "colour" },
    { name: "host", mountPath: "/sub/host", subPath: "inner", readOnly: true },
  ];
  const env = [
    { name: "WHO", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } },
    { name: "COLOUR", valueFrom: { configMapKeyRef: { name: "settings", key: "colour" } } },
    { name: "PASSWORD", valueFrom: { secretKeyRef: { name: "login", key: "password" } } },
  ];
  const main = shell("main", FOREVER, {
    volumeMounts,
    env,
    envFrom: [{ prefix: "S_", configMapRef: { name: "settings" } }],
    resources: { requests: { cpu: "10m" } },
  });
  return manifest(
    podName,
    { containers: [main], volumes, securityContext: { fsGroup: 4242 } },
    { uid, annotations: { note } },
  );
}
