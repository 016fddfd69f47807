/** How the page looks in a real browser with many pods: accessible, no wider than the screen; foreign text is text. */
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after, before, describe, it } from "node:test";
import { type Browser, chromium, type Page } from "playwright-core";
import { type HttpListener, listenHttp } from "../../src/adapters/net/http-server.ts";
import { silent } from "../../src/lib/log.ts";
import { until } from "../integration/support/until.ts";
import { fakeTopology } from "../support/fake-machine.ts";
import { FakePage, madeUpProbes, shortLog } from "../support/fake-page.ts";

const CHROMIUM = "/usr/bin/chromium";
if (!existsSync(CHROMIUM)) {
  process.stdout.write("needs chromium (Debian package chromium)\n");
  process.exit(77);
}
const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"];
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
/** Would run, or would be an element, where it is not shown as text. */
const HOSTILE = `<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>`;
const VIEWS = [
  ...["", "pods", "pods/uid-7", "pods/uid-7/logs", "pods/uid-7/terminal", "pods/uid-7/events"],
  ...["events", "images", "machine", "settings"],
];
const LONG_LINES = 30_000;

/** A log of many lines and of one that seems not to end. */
async function* longLog(): AsyncGenerator<Buffer> {
  for (let line = 0; line < LONG_LINES; line += 1000) {
    yield Buffer.from(Array.from({ length: 1000 }, (_, index) => `line ${line + index}\n`).join(""));
  }
  for (let piece = 0; piece < 512; piece++) yield Buffer.alloc(16_384, "x");
  yield Buffer.from("\nthe last line\n");
}

/** Hands something out to a pod with a hostile name. */
function hostileTopology() {
  const report = fakeTopology();
  const holder = { uid: "uid-5", namespace: HOSTILE, pod: HOSTILE, container: HOSTILE };
  const device = { resource: HOSTILE, id: HOSTILE, nodes: [], isHealthy: false, holder };
  return {
    ...report,
    holdings: [...report.holdings, { ...holder, cpus: [1], memory: [] }],
    devices: [...report.devices, device],
  };
}

describe("the looks of the page", () => {
  const fake = new FakePage({
    pods: 60,
    parts: {
      logs: { read: ({ path }) => (path.endsWith("uid-11") ? longLog() : shortLog()) },
      probes: (uid) =>
        madeUpProbes(uid, Date.now()).map((one) =>
          uid === "uid-7" && one.last ? { ...one, last: { ...one.last, message: HOSTILE } } : one,
        ),
      topology: hostileTopology,
    },
  });
  const complaints: string[] = [];
  let browser: Browser;
  let listener: HttpListener;
  let page: Page;

  before(async () => {
    const address = { host: "127.0.0.1", port: 0, option: "port" };
    listener = await listenHttp({ log: silent }, { address, routes: fake.page.routes(undefined) });
    browser = await chromium.launch({ executablePath: CHROMIUM, args: FLAGS });
    page = await (await browser.newContext({ viewport: { width: 1280, height: 860 } })).newPage();
    page.on("pageerror", (error) => complaints.push(error.message));
    page.on("console", (message) => {
      // The terminal of a pod that has no runtime is refused; one test blocks requests of its own.
      const isExpected = /status of 4\d\d|WebSocket connection|ERR_BLOCKED_BY_CLIENT/.test(message.text());
      if (message.type() === "error" && !isExpected) complaints.push(message.text());
    });
  });
  after(async () => {
    await browser?.close();
    await listener?.close();
  });

  const view = (hash: string) => page.goto(`http://${listener.address}/#/${hash}`);

  it("a login link opens the page, also in the tab of the sign-in", async () => {
    await page.goto(`http://${listener.address}/`);
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    const link = fake.page.link(listener.address);
    const token = link.split("#login=")[1] ?? "";
    const seen: string[] = [];
    page.on("request", (request) => seen.push(request.url(), JSON.stringify(request.headers())));
    await page.goto(link);
    await page.getByRole("heading", { name: "Node n1" }).waitFor();
    await page.getByRole("img", { name: /^CPU: / }).waitFor();
    assert.ok(token.length > 40 && seen.length > 4);
    assert.deepEqual(
      seen.filter((text) => text.includes(token)),
      [],
      "the token is in no address and no header",
    );
    assert.doesNotMatch(page.url(), /login/);
  });

  it("all pods are in the table, and a change is there at once", async () => {
    await view("pods");
    await page.getByRole("row").nth(60).waitFor();
    const pod = fake.get("uid-3");
    assert.ok(pod);
    fake.set({ ...pod, state: "ImagePullBackOff" });
    await page.getByRole("row", { name: /cache-3 .*ImagePullBackOff/ }).waitFor();
    fake.remove("uid-4");
    await page.getByRole("row", { name: /queue-4 / }).waitFor({ state: "detached" });
    await page.getByLabel("Search").fill("api-11");
    await page.getByRole("status").filter({ hasText: "1 of 59 pods" }).waitFor();
    await page.getByLabel("Search").fill("");
  });

  it("charts and sparklines begin with what was measured before the page was opened", async () => {
    await view("pods");
    const points = (await page.locator(".spark polyline").first().getAttribute("points")) ?? "";
    assert.ok(points.split(" ").length >= 39, points);
  });

  it("the machine is drawn with who has what of it", async () => {
    await view("machine");
    await page.getByText("32 processors on 16 cores in 2 sockets, 2 NUMA nodes, 4 L3 groups").waitFor();
    await page.getByText("CPU policy static, memory policy Static, topology policy restricted").waitFor();
    for (const name of ["Socket 1", "NUMA node 0", "NUMA node 1"]) await page.getByRole("heading", { name }).waitFor();
    await page.getByRole("row", { name: /^A worker-2 .*2-3, 18-19 memory 16Gi node 0 .*eth-0000:3b:00\.0/ }).waitFor();
    await page.getByRole("meter", { name: "hugepages-2Mi" }).first().waitFor();
    await page.getByRole("listitem").filter({ hasText: "eth-0000:3b:00.1" }).getByText("unhealthy").waitFor();
    assert.equal(await page.locator(".core").count(), 16);
    assert.equal(await page.locator("i.cpu.exclusive.tone0").count(), 4);
    await page.getByRole("row", { name: /memory\.available 54Gi −3\.0Mi\/s/ }).waitFor();
    await page.getByText("1 pod was evicted").click();
    await page.getByText("The node was low on memory.").waitFor();
  });

  it("each probe has its result, its last run and its streak", async () => {
    await view("pods/uid-8");
    await page.getByRole("row", { name: /^startup main started success 58m/ }).waitFor();
    const liveness =
      /^liveness main alive 361 successes in a row success 1s ago, took 3ms, next in \ds HTTP GET :8080\/healthz/;
    await page.getByRole("row", { name: liveness }).waitFor();
    await view("pods/uid-7");
    const readiness = /^readiness main not ready 14 failures in a row failure .* ago, took 41ms/;
    await page.getByRole("row", { name: readiness }).waitFor();
  });

  it("a container has its limits, disk, processes and kills", async () => {
    await view("pods/uid-8");
    const row = page.getByRole("row", { name: /^main registry\.example/ });
    for (const words of ["of 500m", "throttled 8s", "1 OOM kill", "24 files, 7 sockets"])
      await row.getByText(words).waitFor();
    await row.getByText(/^[\d.]+[KM]i, [\d.]+[KM]i$/).waitFor();
  });

  it("a long log shows its newest lines, and a line without end does not stop it", async () => {
    await view("pods/uid-11/logs");
    const log = page.getByRole("log");
    await log.getByText("the last line").waitFor();
    await page
      .getByRole("status")
      .filter({ hasText: /^2\d{4} lines, the newest/ })
      .waitFor();
    assert.ok((await page.locator(".log-line").count()) < 200, "only what can be seen is in the document");
    await page.getByLabel("Search").fill("line 29999");
    await page.getByRole("status").filter({ hasText: /^1 of/ }).waitFor();
    await page.getByLabel("Search").fill("nowhere to be found");
    await page.getByRole("status").filter({ hasText: /^0 of/ }).waitFor();
  });

  it("foreign text is shown as text, wherever it comes from", async () => {
    const pod = fake.get("uid-7");
    assert.ok(pod);
    const [container] = pod.containers;
    assert.ok(container);
    const step = { step: "pull" as const, since: Date.now(), detail: HOSTILE };
    const error = { step: "pull" as const, message: HOSTILE, count: 2, first: 1, last: Date.now() };
    fake.set({
      ...pod,
      name: HOSTILE,
      namespace: HOSTILE,
      step,
      steps: [step],
      errors: [error],
      warnings: [HOSTILE],
      containers: [{ ...container, image: HOSTILE, message: HOSTILE, reason: HOSTILE }],
    });
    fake.event(pod, { reason: HOSTILE, message: HOSTILE, last: Date.now() });
    for (const hash of ["", "pods", "pods/uid-7", "events", "machine"]) {
      await view(hash);
      await page.locator("main").getByText(HOSTILE).first().waitFor();
      assert.equal(await page.locator("main img").count(), 0, hash);
    }
    assert.equal(await page.evaluate("window.hacked"), undefined);
  });

  const looks = [
    { scheme: "light", size: { width: 1280, height: 860 } },
    { scheme: "dark", size: { width: 1280, height: 860 } },
    { scheme: "dark", size: { width: 390, height: 844 } },
  ] as const;
  for (const { scheme, size } of looks) {
    it(`${scheme}, ${size.width} pixels wide: accessible, and nothing is wider than the screen`, async () => {
      fake.remove("uid-7");
      const pod = fake.get("uid-8");
      assert.ok(pod);
      fake.set({ ...pod, uid: "uid-7" });
      await page.emulateMedia({ colorScheme: scheme });
      await page.setViewportSize(size);
      for (const hash of VIEWS) {
        await view(hash);
        await page.locator("main h1").waitFor();
        assert.deepEqual(await problemsOf(page), [], hash);
        const wide = await page.evaluate("document.documentElement.scrollWidth - window.innerWidth");
        assert.ok(Number(wide) <= 0, `${hash} is ${wide} pixels too wide`);
      }
    });
  }

  it("a terminal needs no inline style", async () => {
    await view("pods/uid-7/terminal");
    await page.getByRole("button", { name: "Open terminal" }).click();
    await page.locator(".xterm-rows").getByText("[closed]").waitFor();
  });

  it("works by keyboard", async () => {
    await page.setViewportSize({ width: 1280, height: 860 });
    await view("");
    await page.reload();
    await page.getByRole("heading", { name: "Node n1" }).waitFor();
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    assert.equal(await page.evaluate("document.activeElement.id"), "content", "the first key leads to the content");
    await page.getByRole("link", { name: /^Pods/ }).first().focus();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Pods" }).waitFor();
    await until(
      "the heading has the focus",
      async () => (await page.evaluate("document.activeElement.id")) === "title",
    );
  });

  it("the switch changes the colours", async () => {
    await page.emulateMedia({ colorScheme: "light" });
    const back = (): Promise<unknown> => page.evaluate("getComputedStyle(document.body).backgroundColor");
    const light = await back();
    await page.getByRole("button", { name: "Colours: as the system" }).click();
    await page.getByRole("button", { name: "Colours: light" }).click();
    await page.getByRole("button", { name: "Colours: dark" }).waitFor();
    assert.notEqual(await back(), light);
  });

  it("a terminal that is refused says why", async () => {
    await view("pods/uid-9/terminal");
    await page.getByRole("button", { name: "Open terminal" }).waitFor();
    // The page has not heard of it yet when the button is pressed.
    await page.route("**/page/api/pods/**", (route) => route.abort("blockedbyclient"));
    fake.remove("uid-9");
    await page.getByRole("button", { name: "Open terminal" }).click();
    await page.getByRole("status").filter({ hasText: "there is no such container" }).waitFor();
    await page.unroute("**/page/api/pods/**");
  });

  it("signing out in one tab signs out the others at once", async () => {
    const other = await page.context().newPage();
    await other.goto(`http://${listener.address}/#/pods/uid-8`);
    await other.getByRole("heading", { name: "cache-8" }).waitFor();
    // The tab loads itself anew; Chromium may never close one in the middle of that.
    const isLoadedAnew = other.waitForEvent("load");
    await other.getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    await isLoadedAnew;
    await other.close();
    await page.goto(fake.page.link(listener.address));
    await page.getByRole("heading", { name: "Node n1" }).waitFor();
  });

  it("nobody is followed when the page is closed", async () => {
    assert.equal(fake.isWatched, true);
    await page.close();
    await until("the streams have ended", () => !fake.isWatched);
  });

  it("nothing was refused by the page's policy, and no script failed", () => assert.deepEqual(complaints, []));
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
