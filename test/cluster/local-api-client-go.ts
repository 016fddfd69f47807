/** Kubernetes' own client library on the local API: informers, leader election, apply, patches, watches (test/support/client-go). */
import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { type Ended, Program } from "../integration/support/program.ts";
import { freePort } from "../support/free-port.ts";
import { LocalApiServer } from "../support/local-api-server.ts";

const folder = process.env["CLIENT_GO_BIN_DIR"] ?? "";
const name = folder === "" ? undefined : readdirSync(folder).find((file) => file.startsWith("client-go-"));
if (name === undefined) {
  process.stdout.write("needs the program of client-go: npm run test:cluster builds it\n");
  process.exit(77);
}

const CHECKS = [
  ...["informers", "metadata informers", "leader election", "server-side apply", "patches", "conflicts and retries"],
  ...["watch with bookmarks", "retry watcher", "too old revisions", "pages", "dynamic client and discovery", "events"],
  ...["scale, eviction and tokens", "errors by their reason"],
];

describe("Kubernetes' client library on the local API", () => {
  const dir = mkdtempSync(join(tmpdir(), "k-"));
  let server: LocalApiServer;
  let ended: Ended;

  before(async () => {
    server = await LocalApiServer.start(join(dir, "objects"), join(dir, "s"), await freePort());
    const env = { ...process.env, HOME: dir, KUBECONFIG: join(dir, "objects/kubeconfig") };
    ended = await new Program([join(folder, name)], { env }).ended;
  });
  after(async () => {
    await server?.end("SIGTERM");
    rmSync(dir, { recursive: true, force: true });
  });

  for (const check of CHECKS) {
    test(check, () => assert.ok(ended.stdout.includes(`ok ${check} (`), `${ended.stdout}${ended.stderr.slice(-2000)}`));
  }
  test("it ends well", () => assert.equal(ended.code, 0, ended.stdout));
});
