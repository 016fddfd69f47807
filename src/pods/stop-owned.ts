import type { RuntimePort } from "../adapters/runtime/port.ts";
import type { Abortable } from "../lib/abort.ts";
import { OWNER_ANNOTATION } from "../model/labels.ts";

/** `down` gives pods a short grace period, in seconds. */
const GRACE_SECONDS = 2;

type Runtime = Pick<
  RuntimePort,
  "listSandboxes" | "listContainers" | "stopContainer" | "stopSandbox" | "removeSandbox"
>;

/** Stops and removes the pods with this owner's mark from a shared runtime, and no others. */
export async function stopOwnedPods(runtime: Runtime, owner: string, options: Abortable): Promise<void> {
  const all = await runtime.listSandboxes({}, options);
  const owned = all.filter(({ annotations }) => annotations[OWNER_ANNOTATION] === owner);
  await Promise.all(
    owned.map(async ({ id }) => {
      const containers = await runtime.listContainers({ sandboxId: id }, options);
      await Promise.all(containers.map((container) => runtime.stopContainer(container.id, GRACE_SECONDS, options)));
      await runtime.stopSandbox(id, options);
      await runtime.removeSandbox(id, options);
    }),
  );
}
