import {
  type Amount,
  amountOf,
  amountOfMilli,
  formatQuantity,
  subtractAmounts,
  tryParseQuantity,
  ZERO,
} from "../model/quantity.ts";
import { addResources, parseResources, type ResourceAmounts } from "../model/resources.ts";

/** What the machine has, in plain numbers. */
export interface MachineResources {
  readonly cores: number;
  readonly memoryBytes: number;
  /** Size of the filesystem that holds the agent's directory; 0 when it cannot be told. */
  readonly storageBytes: number;
  /** Bytes of huge pages by the suffix of their resource, `2Mi`. */
  readonly hugePages: Readonly<Record<string, number>>;
}

/** What of it is kept from pods, as the configuration says it. */
export interface Reservations {
  readonly maxPods: number;
  /** 0: no such limit. */
  readonly podsPerCore: number;
  readonly systemReserved: Readonly<Record<string, string>>;
  readonly kubeReserved: Readonly<Record<string, string>>;
  readonly evictionHard: Readonly<Record<string, string>>;
}

/** True for what somebody advertises under his own domain, such as `example.com/dongle`. */
export function isExtendedResource(name: string): boolean {
  return name.includes("/") && !name.includes("kubernetes.io/");
}

/** Resources as a node reports them. */
export interface NodeResources {
  readonly capacity: Readonly<Record<string, string>>;
  readonly allocatable: Readonly<Record<string, string>>;
}

/** 2.3: capacity, and what of it pods may use once reservations and hard eviction thresholds are taken off. Pure. */
export function nodeResources(machine: MachineResources, reserved: Reservations): NodeResources {
  const byCore = reserved.podsPerCore * machine.cores;
  const capacity: Record<string, Amount> = {
    cpu: amountOfMilli(machine.cores * 1000),
    memory: amountOf(machine.memoryBytes, "binary"),
    pods: amountOf(byCore > 0 ? Math.min(byCore, reserved.maxPods) : reserved.maxPods),
    ...(machine.storageBytes > 0 && { "ephemeral-storage": amountOf(machine.storageBytes, "binary") }),
  };
  for (const [size, bytes] of Object.entries(machine.hugePages)) {
    capacity[`hugepages-${size}`] = amountOf(bytes, "binary");
  }
  const kept = [
    parseResources(reserved.systemReserved),
    parseResources(reserved.kubeReserved),
    evictionReservation(machine, reserved.evictionHard),
  ].reduce(addResources);
  const allocatable: Record<string, Amount> = {};
  for (const [name, amount] of Object.entries(capacity)) allocatable[name] = less(amount, kept[name]);
  for (const [name, amount] of Object.entries(capacity)) {
    if (name.startsWith("hugepages-")) allocatable["memory"] = less(allocatable["memory"] ?? ZERO, amount);
  }
  return { capacity: texts(capacity), allocatable: texts(allocatable) };
}

/** Only memory and the node's filesystem are reserved by their thresholds, as in Kubernetes. */
function evictionReservation(machine: MachineResources, hard: Readonly<Record<string, string>>): ResourceAmounts {
  const memory = threshold(hard["memory.available"], machine.memoryBytes);
  const storage = threshold(hard["nodefs.available"], machine.storageBytes);
  return { ...(memory && { memory }), ...(storage && { "ephemeral-storage": storage }) };
}

/** A quantity, or a share of the whole such as `10%`. */
function threshold(text: string | undefined, whole: number): Amount | undefined {
  if (text === undefined) return undefined;
  const share = /^([\d.]+)%$/.exec(text)?.[1];
  if (share === undefined) return tryParseQuantity(text);
  return amountOf(Math.floor((whole * Number(share)) / 100), "binary");
}

function less(amount: Amount, taken: Amount | undefined): Amount {
  if (taken === undefined) return amount;
  const left = subtractAmounts(amount, taken);
  return left.nano < 0n ? { ...left, nano: 0n } : left;
}

function texts(amounts: Readonly<Record<string, Amount>>): Record<string, string> {
  return Object.fromEntries(Object.entries(amounts).map(([name, amount]) => [name, formatQuantity(amount)]));
}
