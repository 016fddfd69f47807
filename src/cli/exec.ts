import { EXEC_PROTOCOL, runExec } from "../adapters/net/spdy/exec.ts";
import { bool, option } from "../config/index.ts";
import { AbortScope } from "../lib/abort.ts";
import { explained, findAgent, podPath, socketCandidates } from "./agent-client.ts";
import { ReaderLeft } from "./cli-error.ts";
import { command } from "./command.ts";
import { containerOption, helpOption, placeOf, placeOptions } from "./print.ts";

const topic = "General" as const;

export const exec = command({
  name: "exec",
  usage: "[-i] [-t] [-c CONTAINER] POD -- COMMAND [ARGUMENT...]",
  summary: "Execute a command in a container.",
  options: {
    stdin: option(bool, { flag: "stdin", short: "i", default: false, topic, help: "Pass stdin to the container." }),
    tty: option(bool, { flag: "tty", short: "t", default: false, topic, help: "Stdin is a TTY." }),
    ...containerOption,
    ...placeOptions,
    ...helpOption,
  },
  words: { min: 2, max: Number.POSITIVE_INFINITY },
  async run(parsed, { streams }, { signal }) {
    const [pod = "", ...words] = parsed.words;
    const { stdin, container } = parsed.values;
    // A terminal at one end only would garble what a script sends or reads.
    const tty = parsed.values.tty && streams.screen.isTerminal && (!stdin || streams.isTyped);
    const query = new URLSearchParams();
    for (const word of words) query.append("command", word);
    if (stdin) query.set("stdin", "true");
    if (tty) query.set("tty", "true");
    if (container !== "") query.set("container", container);
    const agent = await findAgent(socketCandidates(placeOf(parsed)), { signal });
    const upgraded = await agent
      .upgrade(`${podPath("exec", pod)}?${query}`, EXEC_PROTOCOL, { signal })
      .catch((error) => {
        throw explained(error);
      });
    const scope = new AbortScope([signal]);
    const restore = tty && stdin ? streams.raw() : () => undefined;
    const print = async (descriptor: 1 | 2, bytes: Uint8Array): Promise<void> => {
      if (!(await streams.write(descriptor, bytes))) scope.abort(new ReaderLeft());
    };
    try {
      return await runExec(
        upgraded,
        {
          ...(stdin && { stdin: streams.input(scope) }),
          stdout: (bytes) => print(1, bytes),
          stderr: (bytes) => print(2, bytes),
          ...(tty && { terminal: streams.screen }),
        },
        scope,
      );
    } finally {
      restore();
      scope.abort();
      scope.dispose();
    }
  },
});
