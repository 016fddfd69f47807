/** The page of port 4194 in a real browser, on an agent with real pods. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { type IncomingMessage, request } from "node:http";
import { createRequire } from "node:module";
import type { Socket } from "node:net";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";
import { http } from "../integration/support/http.ts";
import { ClientAuthority, MainPort } from "../integration/support/main-port.ts";
import { forever, manifest, shell } from "../integration/support/manifests.ts";
import { type Agent, requireMachine, Site } from "../integration/support/site.ts";
import { until } from "../integration/support/until.ts";
import { freePort } from "../support/free-port.ts";

requireMachine();

const CHROMIUM = "/usr/bin/chromium";
const CHROMIUM_FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"];
if (!existsSync(CHROMIUM)) {
  process.stdout.write("needs chromium (Debian package chromium)\n");
  process.exit(77);
}
/** Where pictures are kept; none are taken without it. */
const pictures = process.env["KUBELET_PAGE_PICTURES"];
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
/** Text of a pod that would run, or would be an element, where it is not shown as text. */
const HOSTILE = `<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>`;
const DATA = [
  ...["stream", "images", "node", "settings", "machine", "topology"],
  ...["pods/x", "logs/x/main", "exec/x/main"],
];

const UPGRADE = {
  Connection: "Upgrade",
  Upgrade: "websocket",
  "Sec-WebSocket-Version": "13",
  "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
};

/** The subprotocols of the page's terminal. */
function protocolsOf(key: string): string {
  return `v4.channel.k8s.io, base64url.bearer.authorization.k8s.io.${Buffer.from(key).toString("base64url")}`;
}

describe("the page", () => {
  const site = new Site();
  let agent: Agent;
  let port: number;
  let browser: Browser;
  let context: BrowserContext;
  let page: Page;
  /** Errors of scripts, and what the policy of the page refused. */
  const complaints: string[] = [];

  const link = async (): Promise<string> => {
    const { code, stdout, stderr } = await site.run("open");
    assert.equal(code, 0, stderr);
    return stdout.trim();
  };
  const newPage = async (of: BrowserContext): Promise<Page> => {
    const made = await of.newPage();
    made.setDefaultTimeout(30_000);
    made.on("pageerror", (error) => complaints.push(error.message));
    made.on("console", (message) => {
      // A refused request is what some tests are about.
      if (message.type() === "error" && !/status of 4\d\d/.test(message.text())) complaints.push(message.text());
    });
    return made;
  };
  const view = async (hash: string): Promise<void> => {
    await page.goto(`http://127.0.0.1:${port}/#/${hash}`);
  };
  /** What the browser has of its session. */
  const secrets = async (): Promise<{ key: string; cookie: string }> => {
    const cookies = await context.cookies(`http://127.0.0.1:${port}/page/`);
    const key = String(await page.evaluate("localStorage.getItem('kubelet-page-key')"));
    return { key, cookie: cookies.map(({ name, value }) => `${name}=${value}`).join("; ") };
  };
  const picture = async (name: string): Promise<void> => {
    if (pictures === undefined) return;
    mkdirSync(pictures, { recursive: true });
    await page.screenshot({ path: join(pictures, `${name}.png`) });
  };

  before(async () => {
    port = await freePort();
    const chatty = forever(`echo '${HOSTILE}'; i=0; (while :; do i=$((i+1)); echo "tick $i"; sleep 0.2; done) &`);
    const probe = { exec: { command: ["/bin/true"] }, periodSeconds: 1 };
    site.write(manifest("web", { containers: [shell("main", chatty, { readinessProbe: probe })] }));
    const failing = { exec: { command: ["/bin/sh", "-c", "echo no database; exit 1"] }, periodSeconds: 1 };
    site.write(manifest("sick", { containers: [shell("main", forever(), { readinessProbe: failing })] }));
    const bad = `echo '${HOSTILE}' > /dev/termination-log; echo '${HOSTILE}'; exit 3`;
    const twice = forever(
      `if [ -e /data/seen ]; then echo second; else touch /data/seen; echo '${HOSTILE}'; exit 3; fi`,
    );
    const data = { name: "data", mountPath: "/data" };
    const container = shell("main", twice, { volumeMounts: [data] });
    site.write(manifest("twice", { containers: [container], volumes: [{ name: "data", emptyDir: {} }] }));
    site.write(manifest("broken", { containers: [shell("main", bad)] }));
    site.write(manifest("ended", { restartPolicy: "Never", containers: [shell("main", bad)] }));
    [agent, browser] = await Promise.all([
      site.up([`--cadvisor-port=${port}`]),
      chromium.launch({ executablePath: CHROMIUM, args: CHROMIUM_FLAGS }),
    ]);
    context = await browser.newContext({ viewport: { width: 1280, height: 860 }, colorScheme: "light" });
    page = await newPage(context);
    await site.running("web");
  });
  after(async () => {
    await browser?.close();
    await site.close();
  });

  it("up prints the address", async () => {
    await agent.says(new RegExp(`cadvisor {2}listening on 127\\.0\\.0\\.1:${port}, with the page: kubelet open`));
  });

  it("without a session there is only the sign-in; cAdvisor's paths stay open", async () => {
    for (const path of DATA) {
      const { status, body } = await http(`http://127.0.0.1:${port}/page/api/${path}`);
      assert.equal(status, 401, path);
      assert.deepEqual(Object.keys(JSON.parse(body)), ["message", "signIn"], path);
    }
    assert.equal((await http(`http://127.0.0.1:${port}/healthz`)).body, "ok");
    assert.match((await http(`http://127.0.0.1:${port}/metrics`)).body, /^container_cpu_usage_seconds_total\{/m);
    await page.goto(`http://127.0.0.1:${port}/`);
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    assert.doesNotMatch((await page.textContent("body")) ?? "", /web-here/);
  });

  it("a login link works once", async () => {
    const url = await link();
    await page.goto(url);
    await page.getByRole("heading", { name: "Node here" }).waitFor();
    assert.equal(new URL(page.url()).hash, "", "the token is gone from the address");
    const stranger = await browser.newContext();
    const other = await newPage(stranger);
    await other.goto(url);
    await other.getByText("used already").waitFor();
    await stranger.close();
    assert.equal(await page.evaluate("document.cookie"), "", "scripts cannot read the cookie");
  });

  it("the node is measured live", async () => {
    await page.getByRole("img", { name: /^CPU: \d\.\d\d of \d+ cores/ }).waitFor();
    await page.getByRole("img", { name: /^Memory: / }).waitFor();
    await page.getByRole("img", { name: /^Network: / }).waitFor();
  });

  it("pods appear and go without a reload", async () => {
    await view("pods");
    await page.getByRole("row", { name: /web-here.*Running/ }).waitFor();
    site.write(manifest("late", { containers: [shell("main", forever())] }));
    await page.getByRole("row", { name: /late-here.*Running/ }).waitFor();
    await page.getByRole("row", { name: /web-here.*\d+m/ }).waitFor();
    site.remove("late");
    await page.getByRole("row", { name: /late-here/ }).waitFor({ state: "detached" });
  });

  it("a pod has its steps, its probes and its containers", async () => {
    const { uid } = await site.running("web");
    await view(`pods/${uid}`);
    await page.getByRole("heading", { name: "web-here" }).waitFor();
    await page
      .getByRole("listitem")
      .filter({ hasText: /^sandbox/ })
      .waitFor();
    const probe = /^readiness main ready \d+ success(es)? in a row success .* ago, took .* exec \/bin\/true every 1s/;
    await page.getByRole("row", { name: probe }).waitFor();
    await page.getByRole("row", { name: /^main .*running/ }).waitFor();
    await page.getByRole("img", { name: /^CPU: \d+m/ }).waitFor();
  });

  it("logs are followed and searched", async () => {
    const { uid } = await site.running("web");
    await view(`pods/${uid}/logs`);
    const log = page.getByRole("log");
    await log
      .getByText(/tick \d+/)
      .first()
      .waitFor();
    const newest = async (): Promise<number> => {
      const lines = (await log.textContent())?.match(/tick (\d+)/g) ?? [];
      return Math.max(...lines.map((line) => Number(line.slice(5))));
    };
    const before_ = await newest();
    await until("the log goes on", async () => (await newest()) > before_);
    await page.getByLabel("Search").fill("onerror");
    await page
      .getByRole("status")
      .filter({ hasText: /^1 of \d+ lines/ })
      .waitFor();
  });

  it("hostile text is shown as text", async () => {
    const { uid } = await site.running("web");
    await view(`pods/${uid}/logs`);
    await page.getByLabel("Search").fill("onerror");
    await page.getByRole("log").getByText(HOSTILE).waitFor();
    const broken = await site.pod("broken", "has failed", ({ restarts }) => restarts > 0);
    await view(`pods/${broken.uid}`);
    await page.getByRole("heading", { name: "broken-here" }).waitFor();
    const ended = await site.pod("ended", "has ended", ({ phase }) => phase === "Failed");
    await view(`pods/${ended.uid}`);
    await page.getByRole("cell").getByText(HOSTILE).first().waitFor();
    const again = await site.pod("twice", "runs again", ({ restarts, state }) => restarts > 0 && state === "Running");
    await view(`pods/${again.uid}/logs`);
    await page.getByRole("heading", { name: "twice-here" }).waitFor();
    await page.getByLabel("Search").fill("");
    await page.getByRole("log").getByText("second").waitFor();
    await page.getByLabel("previous instance").check();
    await page.getByRole("log").getByText(HOSTILE).waitFor();
    await view("events");
    await page
      .getByRole("row", { name: /BackOff/ })
      .first()
      .waitFor();
    assert.equal(await page.evaluate("window.hacked"), undefined);
    assert.equal(await page.locator("main img").count(), 0);
  });

  it("a terminal runs commands in the container", async () => {
    const { uid } = await site.running("web");
    await view(`pods/${uid}/terminal`);
    await page.getByRole("button", { name: "Open terminal" }).click();
    await page.locator(".xterm").waitFor();
    await page.locator(".xterm-rows").getByText(/#/).first().waitFor();
    await page.keyboard.type("echo $((6*7))-$(hostname)\n");
    await page.locator(".xterm-rows").getByText("42-web-here").waitFor();
    await picture("desktop-light-terminal");
    await page.keyboard.type("exit\n");
    await page.getByRole("status").filter({ hasText: "The command ended." }).waitFor();
    await until("it is logged", () =>
      /Opened a terminal in a container from the page/.test(readFileSync(join(site.state, "kubelet.log"), "utf8")),
    );
  });

  it("a failing probe has its message and its streak", async () => {
    const { uid } = await site.pod("sick", "runs", ({ containers }) => containers[0]?.state === "running");
    await view(`pods/${uid}`);
    const probe = /^readiness main not ready \d+ failures in a row failure .* no database/;
    await page.getByRole("row", { name: probe }).waitFor({ timeout: 30_000 });
  });

  it("signing out closes the terminals of the session at the agent, whatever their client does", async () => {
    const { uid } = await site.running("web");
    const { key, cookie } = await secrets();
    const call = request({
      host: "127.0.0.1",
      port,
      path: `/page/api/exec/${uid}/main?command=sh`,
      headers: { ...UPGRADE, "Sec-WebSocket-Protocol": protocolsOf(key), Cookie: cookie },
    });
    call.end();
    const [response, socket] = (await once(call, "upgrade")) as [IncomingMessage, Socket];
    assert.equal(response.statusCode, 101);
    socket.on("error", () => undefined).resume();
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    await until("the terminal is closed", () => socket.destroyed);
    await page.goto(await link());
    await page.getByRole("heading", { name: "Node here" }).waitFor();
  });

  it("another origin gets no terminal, whatever secrets it has", async () => {
    const { uid } = await site.running("web");
    const { key, cookie } = await secrets();
    const status = (headers: Record<string, string>): Promise<number> =>
      new Promise((resolve, reject) => {
        const call = request({
          host: "127.0.0.1",
          port,
          path: `/page/api/exec/${uid}/main?command=true`,
          headers: { ...UPGRADE, "Sec-WebSocket-Protocol": protocolsOf(key), Cookie: cookie, ...headers },
        });
        call.on("response", (response) => resolve(response.resume().statusCode ?? 0));
        call.on("upgrade", (response, socket) => {
          socket.destroy();
          resolve(response.statusCode ?? 0);
        });
        call.on("error", reject);
        call.end();
      });
    assert.equal(await status({ Origin: `http://127.0.0.1:${port}` }), 101);
    assert.equal(await status({ Origin: "http://127.0.0.1:8080" }), 403);
    assert.equal(await status({ Host: "evil.example" }), 403);
    assert.equal(await status({ Cookie: "" }), 401);
    assert.equal(await status({ "Sec-WebSocket-Protocol": "v4.channel.k8s.io" }), 401);
  });

  it("images, machine and configuration", async () => {
    await view("images");
    await page.getByRole("row", { name: /kubelet\.local\/demo/ }).waitFor();
    await view("machine");
    await page.getByText(/\d+ processors? on \d+ cores? in \d+ sockets?/).waitFor();
    await page.getByText("CPU policy none, memory policy None, topology policy none (scope container)").waitFor();
    await page.getByRole("heading", { name: "NUMA node 0" }).waitFor();
    await page.getByRole("row", { name: /memory\.available/ }).waitFor();
    await view("settings");
    await page.getByRole("row", { name: new RegExp(`--cadvisor-port.*${port}`) }).waitFor();
    assert.equal(await page.getByRole("row", { name: /maxPods/ }).count(), 0, "only what differs");
    await page.getByLabel("also defaults").check();
    await page.getByRole("row", { name: /maxPods/ }).waitFor();
  });

  const looks = [
    { name: "desktop", scheme: "light", size: { width: 1280, height: 860 } },
    { name: "desktop", scheme: "dark", size: { width: 1280, height: 860 } },
    { name: "phone", scheme: "dark", size: { width: 390, height: 844 } },
  ] as const;
  for (const { name, scheme, size } of looks) {
    it(`${name} in ${scheme}: accessible, and nothing is wider than the screen`, async () => {
      const { uid } = await site.running("web");
      await page.emulateMedia({ colorScheme: scheme });
      await page.setViewportSize(size);
      for (const hash of ["", "pods", `pods/${uid}`, `pods/${uid}/logs`, "events", "images", "machine", "settings"]) {
        await view(hash);
        await page.locator("main h1").waitFor();
        assert.deepEqual(await problemsOf(page), [], hash);
        const wide = await page.evaluate("document.documentElement.scrollWidth - window.innerWidth");
        assert.ok(Number(wide) <= 0, `${hash} is ${wide} pixels too wide`);
        await picture(`${name}-${scheme}-${hash.replace(uid, "web").replaceAll("/", "-") || "node"}`);
      }
    });
  }

  it("the switch changes the colours", async () => {
    await page.emulateMedia({ colorScheme: "light" });
    await view("");
    const back = (): Promise<unknown> => page.evaluate("getComputedStyle(document.body).backgroundColor");
    const light = await back();
    await page.getByRole("button", { name: "Colours: as the system" }).click();
    await page.getByRole("button", { name: "Colours: light" }).click();
    await page.getByRole("button", { name: "Colours: dark" }).waitFor();
    assert.notEqual(await back(), light);
    await page.getByRole("button", { name: "Colours: dark" }).click();
  });

  it("works by keyboard", async () => {
    await page.setViewportSize({ width: 1280, height: 860 });
    await view("");
    await page.reload();
    await page.getByRole("heading", { name: "Node here" }).waitFor();
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    assert.equal(await page.evaluate("document.activeElement.id"), "content", "the first key leads to the content");
    await page.getByRole("link", { name: /^Pods/ }).first().focus();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Pods" }).waitFor();
    await until(
      "the focus is on the heading",
      async () => (await page.evaluate("document.activeElement.id")) === "title",
    );
  });

  it("a restart of the agent ends the session, and the page says so", async () => {
    await agent.end("SIGTERM");
    agent = await site.up([`--cadvisor-port=${port}`]);
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    await page.goto(await link());
    await page.getByRole("heading", { name: "Node here" }).waitFor();
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
  });

  it("on another address the main port's authentication decides, and there are no sessions", async () => {
    await agent.end("SIGTERM");
    const authority = new ClientAuthority(site.dir, "clients");
    const flags = ["--address=0.0.0.0", `--client-ca-file=${authority.path}`];
    agent = await site.up([`--cadvisor-port=${port}`, ...flags]);
    const [anyone, admin] = [new MainPort(port, undefined), new MainPort(port, authority.issue("admin"))];
    const opened = await until("the port is open", () => anyone.ask("/").catch(() => undefined));
    assert.equal(opened.status, 200, "the page itself has no data");
    for (const path of DATA) assert.equal((await anyone.ask(`/page/api/${path}`)).status, 401, path);
    assert.equal((await anyone.ask("/metrics")).status, 401);
    assert.equal((await anyone.ask("/page/api/login", "POST")).status, 404);
    assert.equal((await admin.ask("/page/api/settings")).status, 200);
    assert.equal((await admin.ask("/page/api/settings", "GET", { Origin: "https://evil.example" })).status, 403);
    assert.equal(await link(), `https://here:${port}/`);
  });

  it("nothing was refused by the page's policy, and no script failed", () => {
    assert.deepEqual(
      // What the page asked for while the agent stopped.
      complaints.filter(
        (text) => !/ERR_CONNECTION_(REFUSED|RESET|CLOSED)|ERR_EMPTY_RESPONSE|ERR_INCOMPLETE/.test(text),
      ),
      [],
    );
  });
});

/** What axe-core finds serious, in short. */
async function problemsOf(page: Page): Promise<unknown[]> {
  await page.evaluate(AXE);
  const found = (await page.evaluate("axe.run(document, { resultTypes: ['violations'] })")) as {
    violations: { id: string; impact: string; nodes: { html: string; failureSummary: string }[] }[];
  };
  return found.violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, nodes }) => ({ id, html: nodes[0]?.html, why: nodes[0]?.failureSummary }));
}
