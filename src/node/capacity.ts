import { reservationsOf } from "../config/index.ts";
import { isThresholdEnabled, parseThresholdValue, thresholdAmount } from "../model/eviction-threshold.ts";
import { type Amount, amountOf, amountOfMilli, formatQuantity, subtractAmounts, ZERO } from "../model/quantity.ts";
import { addResources, parseResources, type ResourceAmounts } from "../model/resources.ts";

/** The machine's resources as plain numbers. */
export interface MachineResources {
  readonly cores: number;
  readonly memoryBytes: number;
  /** Size of the filesystem that holds the agent's directory; 0 if it cannot be read. */
  readonly storageBytes: number;
  /** Bytes of huge pages by the suffix of their resource, `2Mi`. */
  readonly hugePages: Readonly<Record<string, number>>;
}

/** The configured reservations. */
export interface Reservations {
  readonly maxPods: number;
  /** 0 disables the limit. */
  readonly podsPerCore: number;
  readonly systemReserved: Readonly<Record<string, string>>;
  readonly kubeReserved: Readonly<Record<string, string>>;
  readonly evictionHard: Readonly<Record<string, string>>;
  /** CPUs whose number takes the place of the reserved cpu amounts; none if empty. */
  readonly reservedSystemCPUs?: string;
  /** False if local storage is not a resource of this node. */
  readonly localStorageCapacityIsolation?: boolean;
  /** True if hard eviction thresholds are not taken off. */
  readonly experimentalAllocatableIgnoreEviction?: boolean;
}

/** Resources as a node reports them. */
export interface NodeResources {
  readonly capacity: Readonly<Record<string, string>>;
  readonly allocatable: Readonly<Record<string, string>>;
}

/** Devices of plugins by resource: how many there are, and how many may be allocated. */
export type DeviceCounts = ReadonlyMap<string, { readonly capacity: number; readonly allocatable: number }>;

/** Adds the devices of plugins. Pure. */
export function withDevices(own: NodeResources, devices: DeviceCounts): NodeResources {
  const of = (side: keyof NodeResources): Record<string, string> =>
    Object.fromEntries([...devices].map(([name, counts]) => [name, String(counts[side])]));
  return {
    capacity: { ...own.capacity, ...of("capacity") },
    allocatable: { ...own.allocatable, ...of("allocatable") },
  };
}

/** Returns 0 of each extended resource that the Node object has: they are those of an earlier machine. Pure. */
export function withoutExtended(known: Partial<NodeResources> | undefined): Partial<NodeResources> {
  const zeroed = (amounts: Readonly<Record<string, string>> = {}): Record<string, string> =>
    Object.fromEntries(Object.entries(amounts).map(([name, amount]) => [name, isExtendedName(name) ? "0" : amount]));
  return { capacity: zeroed(known?.capacity), allocatable: zeroed(known?.allocatable) };
}

function isExtendedName(name: string): boolean {
  return name.includes("/") && !name.includes("kubernetes.io/");
}

/** Returns the capacity, and the allocatable rest without reservations and hard eviction thresholds. Pure. */
export function nodeResources(machine: MachineResources, reserved: Reservations): NodeResources {
  const byCore = reserved.podsPerCore * machine.cores;
  const hasStorage = machine.storageBytes > 0 && reserved.localStorageCapacityIsolation !== false;
  const capacity: Record<string, Amount> = {
    cpu: amountOfMilli(machine.cores * 1000),
    memory: amountOf(machine.memoryBytes, "binary"),
    pods: amountOf(byCore > 0 ? Math.min(byCore, reserved.maxPods) : reserved.maxPods),
    ...(hasStorage && { "ephemeral-storage": amountOf(machine.storageBytes, "binary") }),
  };
  for (const [size, bytes] of Object.entries(machine.hugePages)) {
    capacity[`hugepages-${size}`] = amountOf(bytes, "binary");
  }
  const kept = addResources(reservedResources(reserved), evictionReservation(machine, reserved));
  const allocatable: Record<string, Amount> = {};
  for (const [name, amount] of Object.entries(capacity)) allocatable[name] = less(amount, kept[name]);
  for (const [name, amount] of Object.entries(capacity)) {
    if (name.startsWith("hugepages-")) allocatable["memory"] = less(allocatable["memory"] ?? ZERO, amount);
  }
  return { capacity: texts(capacity), allocatable: texts(allocatable) };
}

/** Returns what is reserved for the host's daemons and the node agents. Pure. */
export function reservedResources({
  reservedSystemCPUs = "",
  ...given
}: Pick<Reservations, "systemReserved" | "kubeReserved" | "reservedSystemCPUs">): ResourceAmounts {
  const { systemReserved, kubeReserved } = reservationsOf({ ...given, reservedSystemCPUs });
  return addResources(parseResources(systemReserved), parseResources(kubeReserved));
}

/**
 * Adds the resources that others patched into the node's capacity, such as `example.com/dongle`: all of them are
 * allocatable, as in Kubernetes. Huge page sizes that the kernel no longer has are dropped. Pure.
 */
export function withPatchedResources(own: NodeResources, known: Partial<NodeResources> = {}): NodeResources {
  const capacity: Record<string, string> = { ...own.capacity };
  const allocatable: Record<string, string> = { ...own.allocatable };
  for (const [name, amount] of Object.entries(known.capacity ?? {})) {
    if (Object.hasOwn(own.capacity, name) || name.startsWith("hugepages-")) continue;
    capacity[name] = amount;
    // One of the node's own that cannot be read at the moment, such as ephemeral-storage, keeps its reservation.
    allocatable[name] = name.includes("/") ? amount : (known.allocatable?.[name] ?? amount);
  }
  return { capacity, allocatable };
}

/** Returns what hard thresholds keep free: only of memory and the node's filesystem, as in Kubernetes. Pure. */
export function evictionReservation(
  machine: Pick<MachineResources, "memoryBytes" | "storageBytes">,
  { evictionHard: hard, ...reserved }: Pick<Reservations, "evictionHard" | "experimentalAllocatableIgnoreEviction">,
): ResourceAmounts {
  if (reserved.experimentalAllocatableIgnoreEviction === true) return {};
  const memory = threshold(hard["memory.available"], machine.memoryBytes);
  const storage = threshold(hard["nodefs.available"], machine.storageBytes);
  return { ...(memory && { memory }), ...(storage && { "ephemeral-storage": storage }) };
}

/** The amount of a hard threshold; undefined if there is none, or it is disabled. */
function threshold(text: string | undefined, whole: number): Amount | undefined {
  const value = text === undefined ? undefined : parseThresholdValue(text);
  if (value === undefined || !isThresholdEnabled(value)) return undefined;
  return "quantity" in value ? value.quantity : amountOf(thresholdAmount(value, whole), "binary");
}

function less(amount: Amount, taken: Amount | undefined): Amount {
  if (taken === undefined) return amount;
  const left = subtractAmounts(amount, taken);
  return left.nano < 0n ? { ...left, nano: 0n } : left;
}

function texts(amounts: Readonly<Record<string, Amount>>): Record<string, string> {
  return Object.fromEntries(Object.entries(amounts).map(([name, amount]) => [name, formatQuantity(amount)]));
}
