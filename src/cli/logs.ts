import { StringDecoder } from "node:string_decoder";
import { atLeast, bool, option, optionalInt } from "../config/index.ts";
import { explained, findAgent, podPath, socketCandidates } from "./agent-client.ts";
import { command } from "./command.ts";
import { containerOption, helpOption, placeOf, placeOptions, print } from "./print.ts";

const topic = "General" as const;

export const logs = command({
  name: "logs",
  usage: "[-f] [--previous] [--tail N] POD [-c CONTAINER]",
  summary: "Print the logs of a container.",
  options: {
    follow: option(bool, {
      flag: "follow",
      short: "f",
      default: false,
      topic,
      help: "Stream the logs until the container terminates.",
    }),
    previous: option(bool, {
      flag: "previous",
      short: "p",
      default: false,
      topic,
      help: "Print the logs of the previous instance of the container.",
    }),
    tail: option(optionalInt, {
      flag: "tail",
      default: undefined,
      topic,
      help: "Number of most recent lines to print.",
      validate: atLeast(0),
    }),
    ...containerOption,
    ...placeOptions,
    ...helpOption,
  },
  words: { min: 1, max: 1 },
  async run(parsed, { out }, { signal }) {
    const { follow, previous, tail, container } = parsed.values;
    const query = new URLSearchParams();
    if (follow) query.set("follow", "true");
    if (previous) query.set("previous", "true");
    if (tail !== undefined) query.set("tail", String(tail));
    if (container !== "") query.set("container", container);
    const path = `${podPath("logs", parsed.words[0] ?? "")}?${query}`;
    const agent = await findAgent(socketCandidates(placeOf(parsed)), { signal });
    const decoder = new StringDecoder("utf8");
    try {
      for await (const chunk of agent.bytes(path, { signal })) await print(out, decoder.write(chunk), { signal });
    } catch (error) {
      throw explained(error);
    }
    await print(out, decoder.end(), { signal });
    return 0;
  },
});
