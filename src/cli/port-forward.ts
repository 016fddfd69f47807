import { FORWARD_PROTOCOL, type PortPair, runPortForward } from "../adapters/net/spdy/port-forward.ts";
import { ip, option, text } from "../config/index.ts";
import { explained, findAgent, podPath, socketCandidates } from "./agent-client.ts";
import { CliError } from "./cli-error.ts";
import { command } from "./command.ts";
import { helpOption, placeOf, placeOptions } from "./print.ts";

export const portForward = command({
  name: "port-forward",
  usage: "[--address IP] POD [LOCAL:]REMOTE...",
  summary: "Forward local ports to a pod.",
  options: {
    address: option(text("IP"), {
      flag: "address",
      default: "127.0.0.1",
      topic: "General",
      help: "Local address to listen on.",
      validate: ip,
    }),
    ...placeOptions,
    ...helpOption,
  },
  words: { min: 2, max: Number.POSITIVE_INFINITY },
  async run(parsed, { out, err }, { signal }) {
    const [pod = "", ...words] = parsed.words;
    const ports = words.map(readPair);
    const host = parsed.values.address;
    const agent = await findAgent(socketCandidates(placeOf(parsed)), { signal });
    const upgraded = await agent.upgrade(podPath("port-forward", pod), FORWARD_PROTOCOL, { signal }).catch((error) => {
      throw explained(error);
    });
    const shown = host.includes(":") ? `[${host}]` : host;
    await runPortForward(
      upgraded,
      {
        host,
        ports,
        ready: (bound) => {
          for (const { local, remote } of bound) out.write(`Forwarding from ${shown}:${local} -> ${remote}\n`);
        },
        trouble: (message) => err.write(`${message.trimEnd()}\n`),
      },
      { signal },
    );
    return 0;
  },
});

/** `8080:80`, `80` (the same here) or `:80` (any free port here). Throws `CliError`. */
export function readPair(word: string): PortPair {
  const match = /^(?:(\d{0,5}):)?(\d{1,5})$/.exec(word);
  const remote = Number(match?.[2] ?? 0);
  const local = match?.[1] === undefined ? remote : Number(match[1]);
  if (match === null || remote < 1 || remote > 65_535 || local > 65_535) {
    throw new CliError(`invalid port "${word}": expected REMOTE, LOCAL:REMOTE or :REMOTE`);
  }
  return { local, remote };
}
