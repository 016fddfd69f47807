/** Statistics of pods and containers from the runtime itself: the gate PodAndContainerStatsFromCRI on containerd 2. */
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { http } from "../integration/support/http.ts";
import { forever, manifest, shell } from "../integration/support/manifests.ts";
import { type Agent, requireMachine, Site } from "../integration/support/site.ts";
import { until } from "../integration/support/until.ts";
import { promtoolProblems, whyNoPromtool } from "../support/promtool.ts";

requireMachine();

const cache = join(process.env["XDG_CACHE_HOME"] || join(homedir(), ".cache"), "kubelet-ts", "containerd-2.4.2");
const bin = process.env["CONTAINERD2_BIN_DIR"] || (existsSync(join(cache, "containerd")) ? cache : "");

interface Summary {
  readonly pods: readonly {
    readonly podRef: { readonly name: string };
    readonly memory?: { readonly workingSetBytes: number };
    readonly network?: { readonly name: string; readonly rxBytes: number };
    readonly containers: readonly {
      readonly name: string;
      readonly cpu?: { readonly usageCoreNanoSeconds: number };
      readonly memory?: { readonly workingSetBytes: number; readonly usageBytes: number };
    }[];
  }[];
}

describe("statistics from the runtime", { skip: bin === "" && "CONTAINERD2_BIN_DIR names none" }, () => {
  const site = new Site();
  let agent: Agent;

  const page = async (path: string): Promise<string> => {
    const { status, body } = await http(`http://127.0.0.1:${agent.readOnlyPort}${path}`);
    assert.equal(status, 200, `${path}: ${body}`);
    return body;
  };

  before(async () => {
    const env = { ...process.env, PATH: `${bin}:${process.env["PATH"]}` };
    agent = await site.up(["--feature-gates=PodAndContainerStatsFromCRI=true", "--housekeeping-interval=1s"], { env });
    const work = "dd if=/dev/zero bs=16M count=1 2>/dev/null | sleep 3600 &";
    site.write(manifest("web", { containers: [shell("main", forever(work))] }));
    await site.running("web");
  });
  after(() => site.close());

  const summary = async (): Promise<Summary["pods"][number] | undefined> =>
    (JSON.parse(await page("/stats/summary")) as Summary).pods.find(({ podRef }) => podRef.name === "web-here");

  it("the summary has what containerd measured", async () => {
    // The pod may be measured a moment before the memory of its container grows.
    const pod = await until("the memory of the container and of its pod is measured", async () => {
      const found = await summary();
      const ofMain = found?.containers[0]?.memory?.workingSetBytes ?? 0;
      return ofMain > 16 * 2 ** 20 && (found?.memory?.workingSetBytes ?? 0) >= ofMain ? found : undefined;
    });
    const [main] = pod.containers;
    assert.equal(main?.name, "main");
    assert.ok((main?.cpu?.usageCoreNanoSeconds ?? 0) > 0);
    assert.equal(pod.network?.name, "eth0");
  });

  it("/metrics/cadvisor has the metrics that containerd lists, and those of the machine", async () => {
    const body = await until("containerd lists the container", async () => {
      const text = await page("/metrics/cadvisor");
      return /^container_memory_working_set_bytes\{/m.test(text) ? text : undefined;
    });
    assert.match(body, /^container_cpu_usage_seconds_total\{.*\} \d/m);
    assert.match(body, /^machine_cpu_cores\{.*\} [1-9]/m);
    assert.match(await page("/metrics"), /^kubelet_metrics_provider\{provider="cri"\} 1$/m);
  });

  it("the page is what Prometheus reads", { skip: whyNoPromtool() ?? false }, async () => {
    const problems = promtoolProblems(await page("/metrics/cadvisor"));
    assert.deepEqual(
      problems.filter((line) => !/non-histogram|should have "_total" suffix|counter metrics/.test(line)),
      [],
    );
  });
});
