import { CsiError } from "../../adapters/plugins/csi-error.ts";
import type { Abortable } from "../../lib/abort.ts";
import { messageOf } from "../../lib/errors.ts";
import { ExpandError, type ExpandFate } from "../expansion/expand-error.ts";
import type { ReadyVolume, SetUpDeps } from "../kind.ts";
import type { CsiKindDeps } from "./request.ts";
import { secretsOf } from "./request.ts";
import { type CsiVolume, useOf } from "./volume.ts";

/** Where a volume is on this node. */
export interface ExpandedPlace {
  /** Where it is published; of a block volume the device. */
  readonly volumePath: string;
  readonly stagingPath: string;
}

/** Returns how the volume is grown: by its driver, with its filesystem. */
export function csiExpand(
  volume: CsiVolume,
  place: ExpandedPlace,
  { drivers, objects }: Pick<CsiKindDeps, "drivers"> & Pick<SetUpDeps, "objects">,
): NonNullable<ReadyVolume["expand"]> {
  return async ({ bytes }, options) => {
    const driver = driverOf(drivers, volume.driver);
    const capabilities = await driver.capabilities(options).catch((error: unknown) => {
      throw new Error(`Expander.NodeExpand failed to check if node supports expansion : ${messageOf(error)}`);
    });
    if (!capabilities.expands) {
      throw new ExpandError("unsupported", `NodeExpand is not supported by the CSI driver ${volume.driver}`);
    }
    const { mode, filesystem } = useOf(volume, capabilities, undefined);
    const ref = { ref: volume.expandSecret, field: "NodeExpandSecretRef" };
    const secrets = await secretsOf(ref, { objects }, options);
    const request = { volumeId: volume.handle, ...place, bytes, use: { mode, filesystem }, secrets };
    await grow(() => driver.service.expand(request, { ...options, isMigrated: volume.isMigrated }), options);
  };
}

/** A driver that is away may come back: nothing is decided. */
function driverOf(drivers: CsiKindDeps["drivers"], name: string): ReturnType<CsiKindDeps["drivers"]["get"]> {
  try {
    return drivers.get(name);
  } catch (error) {
    throw new ExpandError("uncertain", messageOf(error));
  }
}

async function grow(call: () => Promise<unknown>, { signal }: Abortable): Promise<void> {
  try {
    await call();
  } catch (error) {
    if (signal.aborted || !(error instanceof CsiError)) throw error;
    const fate = fateOf(error);
    // Kubernetes has no colon in the words for what is never possible.
    const words = `Expander.NodeExpand failed to expand the volume ${fate === "infeasible" ? "" : ": "}${error.message}`;
    throw new ExpandError(fate, words, { cause: error });
  }
}

function fateOf(error: CsiError): ExpandFate {
  if (error.code === "FailedPrecondition") return "inUse";
  if (error.isInfeasible) return "infeasible";
  return error.isFinal ? "final" : "uncertain";
}
