/** How the page looks in a real browser with many pods: accessible, no wider than the screen; foreign text is text. */
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after, before, describe, it } from "node:test";
import { type Browser, chromium, type Page } from "playwright-core";
import { type HttpListener, listenHttp } from "../../src/adapters/net/http-server.ts";
import { silent } from "../../src/lib/log.ts";
import { until } from "../integration/support/until.ts";
import { FakePage } from "../support/fake-page.ts";

const CHROMIUM = "/usr/bin/chromium";
if (!existsSync(CHROMIUM)) {
  process.stdout.write("needs chromium (Debian package chromium)\n");
  process.exit(77);
}
const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"];
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
/** Would run, or would be an element, where it is not shown as text. */
const HOSTILE = `<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>`;
const VIEWS = ["", "pods", "pods/uid-7", "pods/uid-7/logs", "pods/uid-7/terminal", "events", "machine", "settings"];

describe("the looks of the page", () => {
  const fake = new FakePage({ pods: 60 });
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
      // The terminal of a pod that has no runtime is refused.
      const isExpected = /status of 40\d|WebSocket connection/.test(message.text());
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
    await page.goto(fake.page.link(listener.address));
    await page.getByRole("heading", { name: "Node n1" }).waitFor();
    await page.getByRole("img", { name: /^CPU: / }).waitFor();
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
    for (const hash of ["", "pods", "pods/uid-7", "events"]) {
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
