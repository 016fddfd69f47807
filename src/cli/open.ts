import { explained, findAgent, socketCandidates } from "./agent-client.ts";
import { command } from "./command.ts";
import { helpOption, placeOf, placeOptions, print } from "./print.ts";

/** Explains a link on a terminal; a program gets the link alone. */
const ONCE = "The link opens the page once, within five minutes.\n";
const GUARDED = "The page needs what the main port needs: a client certificate or a bearer token.\n";

export const open = command({
  name: "open",
  usage: "",
  summary: "Print a login link of the page, which shows the node, its pods and their logs in a browser.",
  options: { ...placeOptions, ...helpOption },
  words: { min: 0, max: 0 },
  async run(parsed, { out }, { signal }) {
    const agent = await findAgent(socketCandidates(placeOf(parsed)), { signal });
    const { link } = await agent.json<{ link: string }>("/v1/page", { signal, method: "POST" }).catch((error) => {
      throw explained(error);
    });
    const hint = link.includes("#login=") ? ONCE : GUARDED;
    await print(out, `${link}\n${out.isTerminal ? hint : ""}`, { signal });
    return 0;
  },
});
