import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { request as plainRequest } from "node:http";
import { Agent, request as tlsRequest } from "node:https";
import { join } from "node:path";
import { Program } from "../integration/support/program.ts";
import { until } from "../integration/support/until.ts";
import type { TestContainerd } from "./containerd.ts";
import type { TestAuthority } from "./control-plane-pki.ts";
import { freePort } from "./free-port.ts";
import { type TestImage, testImage } from "./registry-image.ts";

const REGISTRY = "/usr/bin/docker-registry";

/** Who may use the test registry. */
export const REGISTRY_USER = { username: "puller", password: "s3cret-pull" } as const;
/** That password as `htpasswd -B` writes it; the cost is the least there is. */
const PASSWORD_HASH = "$2y$05$abcdefghijklmnopqrstuu8YiNQeALDquttzdJ8JTU2sZhhUyTzGK";

/** Why no registry can be started here, or undefined when one can. */
export function whyNoRegistry(): string | undefined {
  return existsSync(REGISTRY) ? undefined : "not installed: docker-registry";
}

/** The header that lets that user in. */
export const REGISTRY_AUTHORIZATION = `Basic ${Buffer.from(`${REGISTRY_USER.username}:${REGISTRY_USER.password}`).toString("base64")}`;

/** A registry on loopback that lets in nobody without the password. It keeps everything below `dir`. */
export class TestRegistry {
  /** For requests of tests, where it speaks TLS. */
  readonly agent: Agent | undefined;

  private constructor(
    readonly host: string,
    private readonly program: Program,
    authority: TestAuthority | undefined,
  ) {
    this.agent = authority && new Agent({ ca: authority.certificate, keepAlive: true });
  }

  /** With an authority it speaks TLS, else plain HTTP. */
  static async start(dir: string, authority?: TestAuthority): Promise<TestRegistry> {
    mkdirSync(dir, { recursive: true });
    const host = `127.0.0.1:${await freePort()}`;
    const users = join(dir, "users");
    writeFileSync(users, `${REGISTRY_USER.username}:${PASSWORD_HASH}\n`, { mode: 0o600 });
    const config = {
      version: "0.1",
      log: { level: "warn" },
      storage: { filesystem: { rootdirectory: join(dir, "data") } },
      http: { addr: host, ...(authority && { tls: writeTls(dir, authority) }) },
      auth: { htpasswd: { realm: "test", path: users } },
    };
    // JSON is YAML.
    writeFileSync(join(dir, "config.yml"), JSON.stringify(config));
    const program = new Program([REGISTRY, "serve", join(dir, "config.yml")]);
    const registry = new TestRegistry(host, program, authority);
    const lets = async (): Promise<boolean> =>
      (await registry.ask("GET", "/v2/").catch(() => undefined))?.status === 200;
    await until("the registry lets its user in", lets, { seen: () => program.stderr.slice(-2000) });
    return registry;
  }

  /** Puts a new image into the registry; answers with what it is made of. */
  async add(repository: string, layers: readonly Buffer[], tag = "1"): Promise<TestImage> {
    const image = testImage(layers);
    for (const { digest, data } of image.blobs) {
      const { location } = await this.ask("POST", `/v2/${repository}/blobs/uploads/`);
      const { pathname, search } = new URL(location, `https://${this.host}`);
      const { status } = await this.ask("PUT", `${pathname}${search}&digest=${digest}`, { body: data });
      if (status !== 201) throw new Error(`upload ${digest}: ${status}`);
    }
    const headers = { "content-type": image.mediaType };
    const { status } = await this.ask("PUT", `/v2/${repository}/manifests/${tag}`, { body: image.manifest, headers });
    if (status !== 201) throw new Error(`upload the manifest of ${repository}: ${status}`);
    return image;
  }

  /** One request of the user. */
  private ask(
    method: string,
    path: string,
    { body, headers = {} }: { body?: Buffer; headers?: Record<string, string> } = {},
  ): Promise<{ status: number; location: string }> {
    const [hostname = "", port = ""] = this.host.split(":");
    const all = { authorization: REGISTRY_AUTHORIZATION, "content-length": String(body?.length ?? 0), ...headers };
    const request = this.agent === undefined ? plainRequest : tlsRequest;
    return new Promise((resolve, reject) => {
      const sent = request({ hostname, port, method, path, headers: all, agent: this.agent }, (answer) => {
        answer.on("error", reject).resume();
        answer.on("end", () => resolve({ status: answer.statusCode ?? 0, location: answer.headers.location ?? path }));
      });
      sent.on("error", reject).end(body);
    });
  }

  /** Puts an image of the runtime into the registry and answers with its name there. */
  async push(containerd: TestContainerd, image: string, repository: string): Promise<string> {
    const name = `${this.host}/${repository}:1`;
    const user = `${REGISTRY_USER.username}:${REGISTRY_USER.password}`;
    await containerd.ctr("images", "push", "--plain-http", "--user", user, name, image);
    return name;
  }

  async stop(): Promise<void> {
    this.agent?.destroy();
    await this.program.end("SIGTERM");
  }
}

function writeTls(dir: string, authority: TestAuthority): { certificate: string; key: string } {
  const pair = authority.server("registry", { dnsNames: ["localhost"], addresses: ["127.0.0.1"] });
  const files = { certificate: join(dir, "registry.crt"), key: join(dir, "registry.key") };
  writeFileSync(files.certificate, pair.certificate);
  writeFileSync(files.key, pair.key, { mode: 0o600 });
  return files;
}
