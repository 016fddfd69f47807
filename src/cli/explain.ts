import { bool, option } from "../config/index.ts";
import type { NodeExplanation } from "../model/node-pressure.ts";
import type { PodExplanation } from "../model/step.ts";
import { explained, findAgent, podPath, socketCandidates } from "./agent-client.ts";
import { CliError } from "./cli-error.ts";
import { command } from "./command.ts";
import { formatOption, formatted, helpOption, placeOf, placeOptions, print } from "./print.ts";
import { renderExplanation } from "./render-explanation.ts";
import { renderNode } from "./render-node.ts";

const nodeOption = {
  node: option(bool, {
    flag: "node",
    default: false,
    topic: "General",
    help: "Explain the node: its pressure, its thresholds, and which pods would be evicted first.",
  }),
} as const;

export const explain = command({
  name: "explain",
  usage: "POD | --node",
  summary: "Explain the state of a pod: its current step, what it waits for, its errors and events; or of the node.",
  options: { ...nodeOption, ...formatOption, ...placeOptions, ...helpOption },
  words: { min: 0, max: 1 },
  async run(parsed, { out, clock }, { signal }) {
    const [pod] = parsed.words;
    const { node, output: format } = parsed.values;
    if (node === (pod !== undefined))
      throw new CliError("kubelet explain needs POD or --node (see kubelet explain --help)");
    const path = pod === undefined ? "/v1/node" : `${podPath("pods", pod)}?storage=true`;
    const agent = await findAgent(socketCandidates(placeOf(parsed)), { signal });
    const found = await agent.json<NodeExplanation | PodExplanation>(path, { signal }).catch((error: unknown) => {
      throw explained(error);
    });
    const how = { now: clock.now().wall, color: out.color, columns: out.isTerminal ? out.size().columns : 100 };
    const text = "signals" in found ? () => renderNode(found, how) : () => renderExplanation(found, how);
    await print(out, format === "text" ? text() : await formatted(found, format), { signal });
    return 0;
  },
});
