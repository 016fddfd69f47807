import type { TopologyReport } from "../model/topology-report.ts";
import { explained, findAgent, socketCandidates } from "./agent-client.ts";
import { command } from "./command.ts";
import { formatOption, formatted, helpOption, placeOf, placeOptions, print } from "./print.ts";
import { renderTopology } from "./render-topology.ts";

export const topology = command({
  name: "topology",
  usage: "",
  summary: "Draw the node: sockets, NUMA nodes, L3 caches, cores, devices and huge pages, and which pod has what.",
  options: { ...formatOption, ...placeOptions, ...helpOption },
  words: { min: 0, max: 0 },
  async run(parsed, { out }, { signal }) {
    const { output: format } = parsed.values;
    const agent = await findAgent(socketCandidates(placeOf(parsed)), { signal });
    const found = await agent.json<TopologyReport>("/v1/topology", { signal }).catch((error: unknown) => {
      throw explained(error);
    });
    await print(out, format === "text" ? renderTopology(found) : await formatted(found, format), { signal });
    return 0;
  },
});
