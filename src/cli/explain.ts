import type { PodExplanation } from "../model/step.ts";
import { explained, findAgent, podPath, socketCandidates } from "./agent-client.ts";
import { command } from "./command.ts";
import { formatOption, formatted, helpOption, placeOf, placeOptions, print } from "./print.ts";
import { renderExplanation } from "./render-explanation.ts";

export const explain = command({
  name: "explain",
  usage: "POD",
  summary: "Explain the state of a pod: its current step, what it waits for, its errors and events.",
  options: { ...formatOption, ...placeOptions, ...helpOption },
  words: { min: 1, max: 1 },
  async run(parsed, { out, clock }, { signal }) {
    const path = podPath("pods", parsed.words[0] ?? "");
    const agent = await findAgent(socketCandidates(placeOf(parsed)), { signal });
    const pod = await agent.json<PodExplanation>(`${path}?storage=true`, { signal }).catch((error: unknown) => {
      throw explained(error);
    });
    const format = parsed.values.output;
    const how = { now: clock.now().wall, color: out.color, columns: out.isTerminal ? out.size().columns : 100 };
    await print(out, format === "text" ? renderExplanation(pod, how) : await formatted(pod, format), { signal });
    return 0;
  },
});
