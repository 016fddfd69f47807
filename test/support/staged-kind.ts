import { podMount, unmountAll, type VolumeKind, type VolumeOfPod } from "../../src/volumes/kind.ts";
import { listLevels } from "../../src/volumes/paths.ts";

/** What the driver of a fake staged kind was asked to do, and what it refuses. */
export interface FakeDriver {
  readonly calls: string[];
  /** What the next calls of a name reject with. */
  readonly faults: Map<string, Error>;
  /** Called at the beginning of each call. */
  onCall?: (name: string) => void;
}

const PLUGIN = "test.example/staged";

/** Where the fake kind stages a volume with this handle, below the root directory. */
export function stageOf(handle: string): string {
  return `plugins/test.example/staged/${handle}`;
}

/** A kind in the manner of CSI: a volume with a handle is staged once as a tmpfs and bound into each pod. */
export function stagedKind(driver: FakeDriver): VolumeKind {
  const call = (name: string, handle: string | undefined): void => {
    driver.calls.push(`${name} ${handle}`);
    driver.onCall?.(name);
    const fault = driver.faults.get(name);
    if (fault !== undefined) throw fault;
  };
  return {
    plugin: PLUGIN,
    handles: (volume) => volume.csi !== undefined,
    handlesPersistent: (spec) => spec.csi !== undefined,
    staging: {
      metadata: async (of) => ({ driverName: "fake", volumeHandle: handleOf(of) }),
      directory: ({ volumeHandle }) => stageOf(volumeHandle ?? "").slice("plugins/".length),
      list: async (plugins, host) =>
        (await listLevels(`${plugins}/${PLUGIN}`, 1, host)).map((name) => `${PLUGIN}/${name}`),
      async stage({ stage }, { host }) {
        const target = `${stage.directory}/globalmount`;
        await host.makeDir(target, 0o750);
        if (await host.isMountPoint(target)) return;
        call("stage", stage.metadata.volumeHandle);
        await host.mountTmpfs(target, { mode: 0o755 });
      },
      async unstage({ directory, metadata }, { host }) {
        const target = `${directory}/globalmount`;
        if (await host.isMountPoint(target)) call("unstage", metadata.volumeHandle);
        await unmountAll(target, host);
        await host.removeDir(target);
      },
    },
    async setUp({ directory, stage }, { host }) {
      const target = podMount(directory);
      await host.makeDir(target, 0o750);
      if (!(await host.isMountPoint(target))) {
        call("publish", stage?.metadata.volumeHandle);
        await host.bindMount(`${stage?.directory}/globalmount`, target);
      }
      return { source: { kind: "path", path: target, readonly: false }, isMounted: true, takesGroup: true };
    },
    async tearDown({ directory, metadata }, { host }) {
      if (await host.isMountPoint(podMount(directory))) call("unpublish", metadata.volumeHandle);
      await unmountAll(podMount(directory), host);
      await host.removeDir(podMount(directory));
    },
  };
}

function handleOf({ volume, persistent }: VolumeOfPod): string {
  return persistent?.object.spec.csi?.volumeHandle ?? volume.csi?.driver ?? "";
}
