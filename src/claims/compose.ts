import { StateFile } from "../adapters/host/state-file.ts";
import { ApiError, type KubeApi, RESOURCE_SLICES } from "../adapters/kubeapi/index.ts";
import { DRA_SERVICES, DraClient } from "../adapters/plugins/dra-client.ts";
import { type agentOptions, isGateOn, type OptionStore } from "../config/index.ts";
import type { Abortable } from "../lib/abort.ts";
import type { Clock } from "../lib/clock.ts";
import { KeyedMutex } from "../lib/keyed-mutex.ts";
import type { Logger } from "../lib/log.ts";
import { type Loop, untilAborted } from "../lib/loop.ts";
import type { Metrics } from "../lib/metrics.ts";
import { type ClaimCheckpoint, decodeClaims, encodeClaims } from "./checkpoint.ts";
import { MOST_CHECKPOINT_BYTES } from "./checkpoint-room.ts";
import { claimMetrics } from "./claim-metrics.ts";
import { ClaimPreparer } from "./claim-preparer.ts";
import { ClaimStore } from "./claim-store.ts";
import { Claims, type ClaimsDeps } from "./claims.ts";
import { DeviceHealthBook } from "./device-health.ts";
import { Drivers } from "./drivers.ts";
import { mayUseClaims } from "./may-use-claims.ts";
import { type SliceApi, SliceCleaner } from "./slice-cleaner.ts";

/** The ring, as far as claims need it. */
export interface ClaimRing {
  readonly plugins: { handle(type: "DRAPlugin", handler: Drivers): void };
  readonly desired: {
    readonly isComplete: boolean;
    get(uid: string): unknown;
    /** Calls `fn` each time the list of pods becomes complete, until the signal aborts. */
    onComplete(fn: () => void, options: Abortable): void;
  };
  readonly observer: { get(uid: string): unknown };
  /** Called once all is built. */
  pool(): { worker(uid: string): unknown; isFinished(uid: string): boolean; wake(uid: string): void };
  /** When the runtime was listed; undefined before. */
  listedAt(): unknown;
}

export interface ComposedClaims {
  /** For the ring: prepares claims, contributes to containers, reports health. */
  readonly provider: Claims;
  readonly loops: readonly Loop[];
}

export interface ComposeClaimsDeps extends ClaimRing {
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly store: OptionStore<typeof agentOptions>;
  readonly api: KubeApi;
  readonly nodeName: string;
  /** True once the Node object is registered. */
  isRegistered(): boolean;
}

/** Dynamic resource allocation: its drivers, the claims of pods, and the clean-up of what drivers published. */
export function composeClaims(deps: ComposeClaimsDeps, signal: AbortSignal): ComposedClaims {
  const { clock, log, metrics, api } = deps;
  const gate = (name: string): boolean => isGateOn(name, deps.store.current.featureGates);
  const store = openStore(deps);
  const counted = claimMetrics(metrics, () => store.list());
  const health = new DeviceHealthBook(clock, (driver, isChanged) => {
    const touched = store.list().filter(({ drivers }) => drivers.get(driver)?.some(isChanged));
    for (const uid of new Set(touched.flatMap(({ pods }) => [...pods]))) deps.pool().wake(uid);
  });
  const slices = new SliceCleaner({ clock, log, api: sliceApi(deps), isUsable: (of) => drivers.isUsable(of) }, signal);
  const drivers: Drivers = new Drivers<(typeof DRA_SERVICES)[number]>(
    {
      clock,
      log,
      services: DRA_SERVICES,
      connect: (options) => new DraClient({ ...options, onCall: (call) => counted.called(options.driver, call) }),
      changed: (driver, isUsable) => {
        slices.changed(driver, isUsable);
        if (isUsable) claims.driverChanged();
      },
      ...(gate("ResourceHealthStatus") && { health }),
    },
    signal,
  );
  deps.plugins.handle("DRAPlugin", drivers);
  const options = () => ({
    hasExtendedResources: gate("DRAExtendedResource"),
    acceptsGroups: gate("DRAWorkloadResourceClaims"),
    hasHealth: gate("ResourceHealthStatus"),
    hasHealthMessage: gate("ResourceHealthStatusMessage"),
  });
  const now = () => clock.now().mono;
  const locks = new KeyedMutex();
  const preparer = new ClaimPreparer({ store, locks, drivers, api, now, measured: counted.measured }, options);
  const healthOf: ClaimsDeps["healthOf"] = (device) => health.healthOf(device);
  const claims: Claims = new Claims({ store, preparer, clock, log, healthOf, pods: podsOf(deps) }, options);
  const loops: readonly Loop[] = [
    { name: "resource claims", run: (stop) => claims.run(stop) },
    { name: "health of claimed devices", run: (stop) => settleHealth(health, { ...deps, claims: store }, stop) },
    { name: "resource slices", run: (stop) => slices.run(stop) },
  ];
  return { provider: claims, loops };
}

/** Wakes the pods of drivers that did not come back after the start: the health of their devices is unknown now. */
async function settleHealth(
  health: DeviceHealthBook,
  { pool, claims }: Pick<ClaimRing, "pool"> & { readonly claims: ClaimStore },
  signal: AbortSignal,
): Promise<void> {
  const isHeard = await health.settle({ signal });
  const silent = claims.list().filter(({ drivers }) => [...drivers.keys()].some((driver) => !isHeard(driver)));
  for (const uid of new Set(silent.flatMap(({ pods }) => [...pods]))) pool().wake(uid);
  await untilAborted(signal);
}

function podsOf(ring: ClaimRing): ClaimsDeps["pods"] {
  const { desired, listedAt } = ring;
  return {
    get isComplete() {
      return desired.isComplete && listedAt() !== undefined;
    },
    isKnown: (uid) => mayUseClaims(uid, ring),
    onComplete: (fn, options) => desired.onComplete(fn, options),
  };
}

function openStore({ log, store }: ComposeClaimsDeps): ClaimStore {
  const path = `${store.current.rootDir}/dra_manager_state`;
  const isIntact = (document: unknown) =>
    // reason: it has these fields, or it could not be decoded
    decodeClaims(document) === undefined ? undefined : (document as ClaimCheckpoint);
  const file = new StateFile<ClaimCheckpoint>({ path, log, mostBytes: MOST_CHECKPOINT_BYTES, mode: 0o600 }, isIntact);
  return new ClaimStore({
    load: () => {
      const found = decodeClaims(file.load()) ?? [];
      if (file.unreadable !== undefined) throw new Error(`${path} is unreadable: ${file.unreadable}`);
      return found;
    },
    save: (claims) => file.save(encodeClaims(claims)),
  });
}

function sliceApi({ api, nodeName, isRegistered }: ComposeClaimsDeps): SliceApi {
  return {
    async drivers(options) {
      if (!isRegistered()) return undefined;
      const found = new Set<string>();
      let continueToken: string | undefined;
      do {
        const query = {
          fieldSelector: `spec.nodeName=${nodeName}`,
          limit: 500,
          ...(continueToken && { continueToken }),
        };
        const page = await api.list(RESOURCE_SLICES, query, options).catch(emptyIfMissing);
        for (const { spec } of page.items) found.add(spec.driver);
        ({ continueToken } = page);
      } while (continueToken);
      return [...found];
    },
    async deleteOf(driver: string, options: Abortable) {
      const selector = new URLSearchParams({ fieldSelector: `spec.nodeName=${nodeName},spec.driver=${driver}` });
      const path = `/apis/resource.k8s.io/v1/resourceslices?${selector.toString()}`;
      await api.raw({ method: "DELETE", path }, options).catch(emptyIfMissing);
    },
  };
}

/** A server without the API has no slices. */
function emptyIfMissing(error: unknown) {
  if (error instanceof ApiError && error.code === "NotFound") return { items: [], continueToken: "" };
  throw error;
}
