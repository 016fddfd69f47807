import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { get } from "node:http";
import { join } from "node:path";
import { Program } from "../integration/support/program.ts";
import { until } from "../integration/support/until.ts";
import type { TestContainerd } from "./containerd.ts";
import { freePort } from "./free-port.ts";

const REGISTRY = "/usr/bin/docker-registry";

/** Who may use the test registry. */
export const REGISTRY_USER = { username: "puller", password: "s3cret-pull" } as const;
/** That password as `htpasswd -B` writes it; the cost is the least there is. */
const PASSWORD_HASH = "$2y$05$abcdefghijklmnopqrstuu8YiNQeALDquttzdJ8JTU2sZhhUyTzGK";

/** Why no registry can be started here, or undefined when one can. */
export function whyNoRegistry(): string | undefined {
  return existsSync(REGISTRY) ? undefined : "not installed: docker-registry";
}

/** A registry on loopback that lets in nobody without the password. It keeps everything below `dir`. */
export class TestRegistry {
  private constructor(
    readonly host: string,
    private readonly program: Program,
  ) {}

  static async start(dir: string): Promise<TestRegistry> {
    mkdirSync(dir, { recursive: true });
    const host = `127.0.0.1:${await freePort()}`;
    const users = join(dir, "users");
    writeFileSync(users, `${REGISTRY_USER.username}:${PASSWORD_HASH}\n`, { mode: 0o600 });
    const config = {
      version: "0.1",
      log: { level: "warn" },
      storage: { filesystem: { rootdirectory: join(dir, "data") } },
      http: { addr: host },
      auth: { htpasswd: { realm: "test", path: users } },
    };
    // JSON is YAML.
    writeFileSync(join(dir, "config.yml"), JSON.stringify(config));
    const program = new Program([REGISTRY, "serve", join(dir, "config.yml")]);
    await until("the registry asks for a password", async () => (await statusOf(`http://${host}/v2/`)) === 401, {
      seen: () => program.stderr.slice(-2000),
    });
    return new TestRegistry(host, program);
  }

  /** Puts an image of the runtime into the registry and answers with its name there. */
  async push(containerd: TestContainerd, image: string, repository: string): Promise<string> {
    const name = `${this.host}/${repository}:1`;
    const user = `${REGISTRY_USER.username}:${REGISTRY_USER.password}`;
    await containerd.ctr("images", "push", "--plain-http", "--user", user, name, image);
    return name;
  }

  async stop(): Promise<void> {
    await this.program.end("SIGTERM");
  }
}

function statusOf(url: string): Promise<number | undefined> {
  return new Promise((resolve) => {
    const request = get(url, (response) => {
      response.on("error", () => undefined).resume();
      resolve(response.statusCode);
    });
    request.on("error", () => resolve(undefined));
  });
}
