/** The parts of a summary that are looked at. */
interface Usage {
  readonly name?: string;
  readonly cpu?: { readonly usageCoreNanoSeconds?: number };
  readonly memory?: { readonly workingSetBytes?: number; readonly availableBytes?: number };
  readonly logs?: { readonly usedBytes?: number };
}

interface Summary {
  readonly node: Usage & {
    readonly systemContainers?: readonly Usage[];
    readonly fs?: { readonly availableBytes?: number };
    readonly rlimit?: { readonly curproc?: number };
  };
  readonly pods: readonly (Usage & {
    readonly podRef: { readonly name: string };
    readonly containers: readonly Usage[];
    readonly network?: { readonly rxBytes?: number };
    readonly process_stats?: { readonly process_count?: number };
  })[];
}

/** What is missing in a summary of a node that runs this pod, but for what runtimes measure later; empty when nothing is. */
export function summaryProblems(body: string, name: string): string[] {
  const { node, pods } = JSON.parse(body) as Summary;
  const pod = pods.find(({ podRef }) => podRef.name === name);
  const container = pod?.containers[0];
  const all = node.systemContainers?.find((one) => one.name === "pods");
  const wanted: Record<string, number | undefined> = {
    "CPU time of the node": node.cpu?.usageCoreNanoSeconds,
    "working set of the node": node.memory?.workingSetBytes,
    "available memory of the node": node.memory?.availableBytes,
    "working set of all pods": all?.memory?.workingSetBytes,
    "space of the node": node.fs?.availableBytes,
    "processes of the node": node.rlimit?.curproc,
    "CPU time of the pod": pod?.cpu?.usageCoreNanoSeconds,
    "working set of the pod": pod?.memory?.workingSetBytes,
    "received bytes of the pod": pod?.network?.rxBytes,
    "processes of the pod": pod?.process_stats?.process_count,
    "CPU time of the container": container?.cpu?.usageCoreNanoSeconds,
    "working set of the container": container?.memory?.workingSetBytes,
    "log of the container": container?.logs?.usedBytes,
  };
  return Object.entries(wanted).flatMap(([what, value]) => (value === undefined || value <= 0 ? [`no ${what}`] : []));
}
