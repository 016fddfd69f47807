// What probes cost: `tsx bench/probes.ts [COUNT] [httpGet|tcpSocket]`.
import { runBundled } from "./bundled.ts";

process.exitCode = await runBundled("probes-run.ts");
