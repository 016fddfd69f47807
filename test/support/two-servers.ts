import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { KubeApi } from "../../src/adapters/kubeapi/index.ts";
import { type LocalCluster, openLocalCluster } from "../../src/apiserver/index.ts";
import { composeControllers } from "../../src/controllers/index.ts";
import { manyListeners } from "../../src/lib/abort.ts";
import { SystemClock } from "../../src/lib/clock.ts";
import { silent } from "../../src/lib/log.ts";
import type { Command } from "../contract/kubectl-script.ts";
import { type Ended, Program } from "../integration/support/program.ts";
import { kubeBinDir, TestControlPlane } from "./control-plane.ts";
import { freePort } from "./free-port.ts";

/** One of the two servers. */
export interface Place {
  readonly kubeconfig: string;
  /** HOME of its kubectl. */
  readonly home: string;
  /** A client with all rights, which writes under this name. */
  api(manager: string): KubeApi;
}

export interface TwoServersOptions {
  /** Manifests by file name, in the directory in which kubectl is run. */
  readonly files: Readonly<Record<string, string>>;
  /** Controllers and a scheduler also run beside the local API. */
  readonly withControllers?: boolean;
}

/** A real control plane and the local API side by side, for kubectl. */
export class TwoServers {
  private readonly dir = mkdtempSync(join(tmpdir(), "kts-script-"));
  private readonly leaving = manyListeners();
  private loops: Promise<unknown> = Promise.resolve();
  private plane: TestControlPlane | undefined;
  /** Bugs of controllers, which the agent only logs. */
  readonly bugs: unknown[] = [];

  private constructor(private readonly options: TwoServersOptions) {
    for (const [name, text] of Object.entries(options.files)) writeFileSync(join(this.dir, name), text);
  }

  static async start(options: TwoServersOptions): Promise<{ servers: TwoServers; real: Place; own: Place }> {
    const servers = new TwoServers(options);
    try {
      const [real, own] = await Promise.all([servers.startReal(), servers.startOwn()]);
      return { servers, real, own };
    } catch (error) {
      await servers.close();
      throw error;
    }
  }

  /** Runs a command of kubectl to its end. */
  run(place: Place, command: Command): Promise<Ended> {
    return this.start(place, command).ended;
  }

  /** Starts a command of kubectl that goes on. */
  start({ kubeconfig, home }: Place, { line, input, edits }: Command): Program {
    const editor = join(home, "editor");
    writeFileSync(editor, `#!/bin/sh\nsed -i '${edits ?? ""}' "$1"\n`);
    chmodSync(editor, 0o755);
    const env = {
      ...process.env,
      HOME: home,
      EDITOR: editor,
      KUBE_EDITOR: editor,
      TMPDIR: home,
      KUBECONFIG: kubeconfig,
    };
    const command = [join(kubeBinDir(), "kubectl"), ...wordsOf(line)];
    const program = new Program(command, { cwd: this.dir, env, stdio: ["pipe", "pipe", "pipe"] });
    program.child.stdin?.on("error", () => undefined).end(input ?? "");
    return program;
  }

  async close(): Promise<void> {
    this.leaving.abort();
    await this.loops;
    await this.plane?.stop();
    rmSync(this.dir, { recursive: true, force: true });
  }

  private async startReal(): Promise<Place> {
    const scheduler = this.options.withControllers === true;
    // Not served here, and to be answered as the original answers what it does not serve.
    const apiServerArgs = ["--runtime-config=autoscaling/v1=false,autoscaling/v2=false"];
    const plane = await TestControlPlane.start({ controllers: true, scheduler, apiServerArgs });
    this.plane = plane;
    const admin = { commonName: "kubernetes-admin", organizations: ["system:masters"] };
    const kubeconfig = plane.writeKubeconfig("script", admin);
    return { kubeconfig, home: this.home("real"), api: () => plane.clients(admin).calls };
  }

  private async startOwn(): Promise<Place> {
    const { signal } = this.leaving;
    const options = {
      directory: join(this.dir, "objects"),
      socket: join(this.dir, "api.sock"),
      kubeconfig: join(this.dir, "own.kubeconfig"),
      nodeName: "here",
      host: "127.0.0.1",
      port: await freePort(),
      serviceSubnet: "10.96.0.0/16",
      nodePorts: [30_000, 32_767] as const,
      describeSource: () => "a file",
    };
    mkdirSync(options.directory, { mode: 0o700 });
    const clock = new SystemClock();
    const local = await openLocalCluster({ clock, log: silent, random: Math.random }, options, { signal });
    await local.listeners.api?.open();
    this.loops = Promise.all([
      local.listeners.api?.run({ signal }),
      ...[...local.loops, ...this.controllersOf(local)].map((loop) => loop.run(signal)),
    ]);
    const api = (manager: string): KubeApi => local.server.api(manager);
    return { kubeconfig: options.kubeconfig, home: this.home("own"), api };
  }

  private controllersOf({ server }: LocalCluster): ReturnType<typeof composeControllers> {
    if (this.options.withControllers !== true) return [];
    const log = { ...silent, error: (_message: string, error: unknown) => void this.bugs.push(error) };
    const api = (manager: string): KubeApi => server.api(manager);
    return composeControllers({ api, clock: new SystemClock(), log, random: Math.random }, this.leaving.signal);
  }

  private home(name: string): string {
    const home = join(this.dir, name);
    mkdirSync(home);
    return home;
  }
}

/** What a command printed, without what differs between any two servers. */
export function normalOutput({ home }: Place, { code, stdout, stderr }: Ended): string {
  const text = `exit ${code}\n${stdout}--\n${stderr}`
    .replaceAll(home, "HOME")
    .replaceAll(/https:\/\/127\.0\.0\.1:\d+/g, "SERVER")
    .replaceAll(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, "UID")
    .replaceAll(/kube-api-access-[a-z0-9]{5}/g, "kube-api-access-RANDOM")
    .replaceAll(/(resourceVersion"?: ?)"\d+"/g, '$1"VERSION"')
    .replaceAll(/\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[.\d]*( ?[+-]\d{4}|Z)?/g, "TIME")
    .replaceAll(/(LIVE|MERGED)-\d+/g, "$1")
    .replaceAll(/edit-\d+/g, "edit-NUMBER")
    .replaceAll(/^(Start Time|CreationTimestamp|Created):(\s+).*$/gm, "$1:$2TIME")
    .replaceAll(/ +$/gm, "");
  // The width of a column follows its longest cell.
  return text.replaceAll(/(?<=\s)(\d+(m\d+)?s|[2-9]m)(?=\s|$)/gm, "AGE").replaceAll(/ {2,}/g, "  ");
}

function wordsOf(line: string): string[] {
  return (line.match(/(?:'[^']*'|[^\s'])+/g) ?? []).map((word) => word.replaceAll("'", ""));
}
