import { type Abortable, AbortScope } from "../lib/abort.ts";
import type { Timer } from "../lib/clock.ts";
import { gitVersion } from "../lib/version.ts";
import { type CliDeps, command } from "./command.ts";
import { configReader } from "./config-reader.ts";
import type { RunningAgent, UpOptions } from "./launcher.ts";
import { LiveView } from "./live-view.ts";
import { line, PlainView } from "./plain-view.ts";
import { placeOptions } from "./print.ts";
import { planUp, shownUpOptions, upOptions } from "./up-options.ts";
import type { ViewModel } from "./view-model.ts";
import { webAddresses } from "./web-addresses.ts";

/** Lines without a terminal are gathered for so many milliseconds: when many pods start, a write for each would cost a core. */
const GATHER_MS = 30;

export const up = command({
  name: "up",
  usage: "[--pods DIR] [--config FILE] [--state-dir DIR] [FLAGS]",
  summary: "Run pods from manifest files and from kubectl without a cluster, on a private containerd.",
  options: upOptions,
  shownOptions: shownUpOptions,
  words: { min: 0, max: 0 },
  async run(parsed, deps, { signal }) {
    const options = await planUp(parsed, configReader(deps), { signal });
    return deps.out.isTerminal ? upOnTerminal(options, deps, { signal }) : upPlain(options, deps, { signal });
  },
});

async function upOnTerminal(options: UpOptions, deps: CliDeps, { signal }: Abortable): Promise<number> {
  const { out, clock, launcher, program } = deps;
  let starting: ViewModel["starting"] = { text: "starting", since: clock.now().wall };
  let agent: RunningAgent | undefined;
  const model = (): ViewModel => ({
    title: `kubelet ${gitVersion}`,
    stateDir: options.stateDir,
    logFile: options.logFile,
    runtime: agent?.runtime ?? "",
    ports: agent?.ports() ?? [],
    kubeconfig: options.agent.apiserverKubeconfig,
    starting,
    pods: agent?.view.summaries() ?? [],
    urls: webAddresses(agent?.pods() ?? []),
    program,
    flags: options.stateDir === placeOptions.stateDir.default ? "" : `--state-dir ${options.stateDir}`,
  });
  // Ends after the agent, not with the signal: the last picture shows how it ended.
  const drawing = new AbortScope([]);
  const view = new LiveView({ out, clock, model }, drawing);
  try {
    out.onResize(view.changed, { signal: drawing.signal });
    view.changed();
    const progress = (text: string): void => {
      starting = { text, since: clock.now().wall };
      view.changed();
    };
    agent = await launcher.up(options, { progress }, { signal });
    starting = undefined;
    agent.view.onChange(view.changed, { signal: drawing.signal });
    agent.onPorts(view.changed, { signal: drawing.signal });
    view.changed();
    return await agent.done;
  } finally {
    drawing.abort();
    drawing.dispose();
    if (agent !== undefined) out.write(farewell(agent, deps, model().flags));
  }
}

async function upPlain(options: UpOptions, deps: CliDeps, { signal }: Abortable): Promise<number> {
  const { out, clock, launcher } = deps;
  const view = new PlainView({ kubeconfig: options.agent.apiserverKubeconfig });
  const gathered: string[] = [];
  let timer: Timer | undefined;
  const flush = (): void => {
    timer?.cancel();
    timer = undefined;
    if (gathered.length > 0) out.write(gathered.splice(0).join(""));
  };
  const say = (lines: readonly string[]): void => {
    gathered.push(...lines);
    if (gathered.length > 0) timer ??= clock.after(GATHER_MS, flush);
  };
  const now = (): number => clock.now().wall;
  const progress = (text: string): void => say([line(now(), "kubelet", text)]);
  progress(`${gitVersion} starting, state in ${options.stateDir}, log in ${options.logFile}`);
  const agent = await launcher.up(options, { progress }, { signal }).finally(flush);
  if (agent.runtime !== "") progress(`runtime ${agent.runtime}`);
  const tellPorts = (): void => say(view.ports(agent.ports(), now()));
  const tellPod = (uid: string): void => say(view.pod(uid, agent.view.summary(uid), now()));
  const telling = new AbortScope([]);
  try {
    agent.view.onChange(tellPod, { signal: telling.signal });
    agent.onPorts(tellPorts, { signal: telling.signal });
    tellPorts();
    say(view.pods(agent.view.summaries(), now()));
    flush();
    return await agent.done;
  } finally {
    telling.abort();
    telling.dispose();
    flush();
    const flags = options.stateDir === placeOptions.stateDir.default ? "" : `--state-dir ${options.stateDir}`;
    out.write(farewell(agent, deps, flags));
  }
}

function farewell(agent: RunningAgent, { program }: CliDeps, flags: string): string {
  const count = agent.view.summaries().filter((pod) => pod.phase === "Running").length;
  const pods = count === 1 ? "1 pod keeps running" : `${count} pods keep running`;
  const down = `${program} down${flags === "" ? "" : ` ${flags}`}`;
  return `\nThe agent has stopped; ${pods}. Start it again to resume, or remove everything with: ${down}\n`;
}
