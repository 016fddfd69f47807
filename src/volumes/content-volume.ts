import type { Clock } from "../lib/clock.ts";
import type { VolumeFile } from "./kind.ts";
import {
  type ReadyVolume,
  type TearDownDeps,
  unmountAll,
  type VolumeDeps,
  type VolumeOfPod,
  type VolumeOnDisk,
} from "./kind.ts";
import { checkedPayload } from "./payload.ts";

/** The files of a volume as they should be now. */
export interface VolumeContent {
  readonly files: Iterable<readonly [string, VolumeFile]>;
  readonly refreshAt?: number;
}

/** Sets up a volume whose files the agent writes: collects them first, so that a failure leaves nothing behind. */
export async function setUpContent(
  { pod, directory }: VolumeOfPod,
  deps: VolumeDeps,
  { content, inMemory }: { content: Promise<VolumeContent>; inMemory: boolean },
): Promise<ReadyVolume> {
  const { host, clock } = deps;
  const { files, refreshAt } = await content;
  const payload = checkedPayload(files);
  await host.makeDir(directory, 0o777);
  if (inMemory && !(await host.isMountPoint(directory))) await host.mountTmpfs(directory, { mode: 0o1777 });
  const gid = pod.spec.securityContext?.fsGroup;
  await host.writeFiles(directory, { files: payload, stamp: stampOf(clock), ...(gid === undefined ? {} : { gid }) });
  const source = { kind: "path", path: directory, readonly: true } as const;
  return { source, isMounted: inMemory, ...(refreshAt === undefined ? {} : { refreshAt }) };
}

export async function tearDownContent({ directory }: VolumeOnDisk, { host }: TearDownDeps): Promise<void> {
  await unmountAll(directory, host);
  await host.removeTree(directory);
}

/** `2026_01_02_03_04_05`, in UTC. */
function stampOf(clock: Clock): string {
  return new Date(clock.now().wall).toISOString().slice(0, 19).replace(/[-T:]/g, "_");
}
