import { spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { median, type Row, show } from "./table.ts";

const WARM_MS = 4000;
const WATCHED_MS = 20_000;
const PAINTS = 5;

interface Spent {
  readonly cpuMs: number;
  readonly samples: number;
  readonly sampledMs: number;
}

/** The page with 250 pods in chromium: CPU of the agent's side while it is open and while it is not, and the first paint. */
export async function measurePage(): Promise<readonly Row[]> {
  const child = spawn(process.execPath, ["--import", "tsx", join(import.meta.dirname, "page-server.ts")], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const next = async (): Promise<string> => String((await lines.next()).value);
  const spent = async (): Promise<Spent> => {
    child.stdin.write("\n");
    return JSON.parse(await next()) as Spent;
  };
  const link = await next();
  const browser = await chromium.launch({
    executablePath: "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
  });
  try {
    const page = await (await browser.newContext()).newPage();
    await page.goto(link);
    await page.getByRole("heading", { name: "Node n1" }).waitFor();
    const shares: number[] = [];
    for (const hash of ["", "pods"]) {
      await page.goto(`${new URL(link).origin}/#/${hash}`);
      await pause(WARM_MS);
      const before = await spent();
      await pause(WATCHED_MS);
      const after = await spent();
      shares.push(((after.cpuMs - before.cpuMs) / WATCHED_MS) * 100);
    }
    const paints: number[] = [];
    for (let round = 0; round < PAINTS; round++) {
      await page.reload();
      await page.getByRole("row").nth(200).waitFor();
      paints.push(Number(await page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")));
    }
    await page.close();
    await pause(WARM_MS);
    const idle = await spent();
    await pause(WATCHED_MS);
    const stillIdle = await spent();
    const idleShare = ((stillIdle.cpuMs - idle.cpuMs) / WATCHED_MS) * 100;
    return [
      {
        what: "page of 250 pods, view of the node: agent's share of a core",
        measured: shares[0] ?? 0,
        limit: 3,
        unit: "%",
      },
      {
        what: "page of 250 pods, view of the pods: agent's share of a core",
        measured: shares[1] ?? 0,
        limit: 3,
        unit: "%",
      },
      { what: "page of 250 pods, closed: agent's share of a core", measured: idleShare, limit: 0.1, unit: "%" },
      { what: "page of 250 pods: first contentful paint", measured: median(paints), limit: 500, unit: "ms" },
    ];
  } finally {
    await browser.close();
    child.stdin.end();
    await new Promise((resolve) => child.on("exit", resolve));
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) show(await measurePage());
