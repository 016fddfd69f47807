/** Images on a filesystem of their own: whose usage counts, on small real filesystems, and what is shown of them. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, afterEach, before, describe, it } from "node:test";
import { imageService } from "../../src/adapters/cri/methods.ts";
import { buildOciArchive, imageArchitecture } from "../../src/adapters/embedded/oci-archive.ts";
import type { ImageReport } from "../../src/model/image-report.ts";
import { http } from "../integration/support/http.ts";
import { HEAD } from "../integration/support/plain-agent.ts";
import { KUBELET, Program } from "../integration/support/program.ts";
import { requireMachine, Site } from "../integration/support/site.ts";
import { pause, until } from "../integration/support/until.ts";
import { removeLogLinks, removeMounts } from "../support/cluster-site.ts";
import { TestContainerd } from "../support/containerd.ts";
import { CriProxy } from "../support/cri-proxy.ts";
import { freePort } from "../support/free-port.ts";
import { LoopFilesystem, whyNoLoop } from "../support/loop-filesystem.ts";

requireMachine();
const reason = whyNoLoop();
if (reason !== undefined) {
  process.stdout.write(`${reason}\n`);
  process.exit(77);
}

const MIB = 1024 * 1024;
const [HIGH, LOW] = [60, 50];
/** Unused images, by their size. */
const SPARE = { names: ["spare-a", "spare-b", "spare-c"], megabytes: 12 } as const;
const imageDisk = new LoopFilesystem(256);
const nodeDisk = new LoopFilesystem(128);

const percentUsed = (disk: LoopFilesystem): number => {
  const { blocks, bavail } = statfsSync(disk.path);
  return (1 - bavail / blocks) * 100;
};
const capacity = (disk: LoopFilesystem): number => {
  const { blocks, bsize } = statfsSync(disk.path);
  return blocks * bsize;
};
/** Fills a filesystem up to so many per cent. */
const fill = (disk: LoopFilesystem, percent: number): void => {
  const { blocks, bavail, bsize } = statfsSync(disk.path);
  const bytes = Math.max(0, Math.floor(blocks * (percent / 100) - (blocks - bavail)) * bsize);
  writeFileSync(join(disk.path, "filler"), Buffer.alloc(bytes, 1));
  assert.ok(Math.abs(percentUsed(disk) - percent) < 1, `${percentUsed(disk)} % used`);
};
const empty = (disk: LoopFilesystem): void => rmSync(join(disk.path, "filler"), { force: true });

describe("images on a filesystem of their own", () => {
  let site: Site;
  let containerd: TestContainerd;
  let proxy: CriProxy;
  let agent: Program;
  let readOnlyPort: number;

  before(async () => {
    site = within(nodeDisk, () => new Site());
    containerd = await within(imageDisk, () => TestContainerd.start());
    proxy = await CriProxy.start(containerd.socket);
    for (const name of SPARE.names) await bring(name);
  });
  afterEach(async () => {
    await agent?.end("SIGTERM");
    proxy.heal();
    for (const disk of [imageDisk, nodeDisk]) empty(disk);
  });
  after(async () => {
    await proxy?.stop();
    await containerd?.stop();
    await removeMounts(site.dir);
    await removeLogLinks(site.dir);
    rmSync(site.dir, { recursive: true, force: true });
    for (const disk of [imageDisk, nodeDisk]) disk.close();
  });

  /** What is made meanwhile has its directories on this filesystem. */
  const within = <T>(disk: LoopFilesystem, make: () => T): T => {
    const before = process.env["TMPDIR"];
    process.env["TMPDIR"] = disk.path;
    const made = make();
    if (before === undefined) delete process.env["TMPDIR"];
    else process.env["TMPDIR"] = before;
    return made;
  };
  const bring = async (name: string): Promise<void> => {
    const noise = { kind: "file", path: "noise", mode: 0o644, data: randomBytes(SPARE.megabytes * MIB) } as const;
    const image = { name: `localhost/kubelet-ts-test/${name}:1`, files: [noise] };
    const archive = join(nodeDisk.path, "image.tar");
    writeFileSync(archive, buildOciArchive([image], imageArchitecture(process.arch)));
    await containerd.ctr("images", "import", archive);
    rmSync(archive);
  };
  const start = async (thresholds: object): Promise<void> => {
    const root = join(site.state, "kubelet");
    mkdirSync(root, { recursive: true });
    readOnlyPort = await freePort();
    const config = join(site.dir, "config.json");
    // 0 stands for the default age.
    writeFileSync(
      config,
      JSON.stringify({ ...HEAD, ...thresholds, imageMinimumGCAge: "1ms", staticPodPath: site.pods }),
    );
    agent = new Program([
      ...[KUBELET, `--config=${config}`, `--root-dir=${root}`, `--cert-dir=${site.state}/pki`],
      ...[`--pod-logs-dir=${site.state}/log/pods`, `--read-only-port=${readOnlyPort}`],
      ...[`--port=${await freePort()}`, `--healthz-port=${await freePort()}`],
      ...[`--local-api-socket=${site.state}/kubelet.sock`, `--cgroup-root=${containerd.cgroupParent}`],
      ...[`--container-runtime-endpoint=${proxy.endpoint}`, "--hostname-override=here"],
      ...["--fail-swap-on=false", "--resolv-conf="],
    ]);
    await site.answers(agent);
  };
  const images = async (): Promise<ImageReport> => {
    const { code, stdout, stderr } = await site.run("images", "-o", "json");
    assert.equal(code, 0, stderr);
    return JSON.parse(stdout) as ImageReport;
  };
  const spare = async (): Promise<readonly string[]> => {
    const listed = await containerd.ctr("images", "ls", "--quiet");
    return SPARE.names.filter((name) => listed.includes(`/${name}:1`));
  };
  interface Summary {
    readonly node: {
      readonly fs?: { readonly capacityBytes?: number };
      readonly runtime?: Partial<Record<"imageFs" | "containerFs", { readonly capacityBytes?: number }>>;
    };
  }
  const summary = async (): Promise<Summary["node"]> => {
    const read = async (): Promise<Summary["node"] | undefined> => {
      const { status, body } = await http(`http://127.0.0.1:${readOnlyPort}/stats/summary`);
      if (status !== 200) return undefined;
      const { node } = JSON.parse(body) as Summary;
      return node.runtime?.imageFs?.capacityBytes === undefined ? undefined : node;
    };
    return until("the summary has the filesystems", read);
  };
  /** The first check comes five seconds after the start, and the next ones five minutes later. */
  const firstCheck = async (): Promise<void> => {
    const asked = proxy.calls.get("ImageFsInfo") ?? 0;
    await pause(6000);
    await until("the runtime was asked", () => (proxy.calls.get("ImageFsInfo") ?? 0) > asked);
  };
  /** The writable layers of containers are on the node's filesystem, and images on their own. */
  const splitFilesystems = (): void => {
    const imagePath = join(containerd.dir, "root");
    assert.ok(existsSync(imagePath), imagePath);
    const place = (mountpoint: string) => ({ timestamp: 1, fsId: { mountpoint }, usedBytes: { value: 1 } });
    const response = imageService.imageFsInfo.response;
    const message = response.fromPartial({
      imageFilesystems: [place(imagePath)],
      containerFilesystems: [place(site.state)],
    });
    proxy.answer = (method) => (method === "ImageFsInfo" ? response.encode(message).finish() : undefined);
  };

  const layouts = [
    { layout: "apart from the node's", prepare: () => undefined, hasContainers: false },
    { layout: "apart from that of writable layers", prepare: splitFilesystems, hasContainers: true },
  ];
  for (const { layout, prepare, hasContainers } of layouts) {
    describe(`an image filesystem ${layout}`, () => {
      it("is shown as what it is", async () => {
        prepare();
        await start({ imageGCHighThresholdPercent: 100 });
        let seen: ImageReport | undefined;
        // The runtime writes to its disk meanwhile.
        const usageShown = async (): Promise<ImageReport | undefined> => {
          seen = await images();
          return seen.usagePercent === Math.ceil(percentUsed(imageDisk)) ? seen : undefined;
        };
        const report = await until("the usage is that of the disk", usageShown, { seen: () => seen });
        assert.ok(report.imageFilesystem?.mountpoint.startsWith(imageDisk.path), report.imageFilesystem?.mountpoint);
        assert.equal(report.imageFilesystem?.capacityBytes, capacity(imageDisk));
        assert.equal(report.containerFilesystem?.capacityBytes, hasContainers ? capacity(nodeDisk) : undefined);
        const { fs, runtime } = await summary();
        assert.equal(fs?.capacityBytes, capacity(nodeDisk));
        assert.equal(runtime?.imageFs?.capacityBytes, capacity(imageDisk));
        assert.equal(runtime?.containerFs?.capacityBytes, capacity(hasContainers ? nodeDisk : imageDisk));
      });

      it("keeps its images when only the node's filesystem is full", async () => {
        prepare();
        assert.ok(percentUsed(imageDisk) < HIGH, `${percentUsed(imageDisk)} % used`);
        fill(nodeDisk, 85);
        await start({ imageGCHighThresholdPercent: HIGH, imageGCLowThresholdPercent: LOW });
        await firstCheck();
        assert.deepEqual(await spare(), SPARE.names);
        assert.equal((await images()).bytesToFree, 0);
      });

      it("gives up unused images down to the low threshold when it is full itself", async () => {
        prepare();
        assert.ok(percentUsed(nodeDisk) < LOW, `${percentUsed(nodeDisk)} % of the node's filesystem used`);
        fill(imageDisk, HIGH + 2);
        await start({ imageGCHighThresholdPercent: HIGH, imageGCLowThresholdPercent: LOW });
        const wanted = ((HIGH + 2 - LOW) / 100) * capacity(imageDisk);
        let seen: ImageReport | undefined;
        // After the first image the usage may be between the two thresholds, with nothing more to free for a new pass.
        const removed = async (): Promise<ImageReport | undefined> => {
          seen = await images();
          return seen.collected.images > 0 && percentUsed(imageDisk) <= LOW + 1 ? seen : undefined;
        };
        const report = await until("the low threshold was reached", removed, { seen: () => seen });
        assert.ok(report.collected.bytes >= wanted / 3, `${report.collected.bytes} of ${wanted} bytes`);
        // An image whose removal was under way may have gone since.
        const left = await until("the rest is what was not removed", async () => {
          const { collected } = await images();
          const names = await spare();
          return names.length === SPARE.names.length - collected.images && names;
        });
        for (const name of SPARE.names.filter((one) => !left.includes(one))) await bring(name);
      });
    });
  }
});
