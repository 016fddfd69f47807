import type { AgentOptions } from "./agent-options.ts";

type Given = Pick<AgentOptions, "systemReserved" | "kubeReserved" | "reservedSystemCPUs">;

/**
 * The reservations in force: with `reservedSystemCPUs` the number of those CPUs takes the place of both cpu amounts, as
 * in Kubernetes. Pure.
 */
export function reservationsOf(options: Given): Pick<AgentOptions, "systemReserved" | "kubeReserved"> {
  const { systemReserved, kubeReserved, reservedSystemCPUs } = options;
  if (reservedSystemCPUs === "") return { systemReserved, kubeReserved };
  const { cpu: _replaced, ...kube } = kubeReserved;
  return { systemReserved: { ...systemReserved, cpu: String(cpusIn(reservedSystemCPUs).size) }, kubeReserved: kube };
}

/** The CPUs of a list that was validated, such as `0-3,8`. Pure. */
export function cpusIn(list: string): ReadonlySet<number> {
  const found = new Set<number>();
  for (const range of list.split(",").filter((part) => part !== "")) {
    const [first = "0", last = first] = range.split("-");
    for (let cpu = Number(first); cpu <= Number(last); cpu++) found.add(cpu);
  }
  return found;
}
