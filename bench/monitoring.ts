// What monitoring and eviction cost on a node with 100 pods that do nothing: `tsx bench/monitoring.ts [SECONDS]`.
import { runBundled } from "./bundled.ts";

process.exitCode = await runBundled("monitoring-run.ts");
