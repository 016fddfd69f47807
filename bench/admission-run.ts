// Measures admission by topology and the device checkpoint, without a runtime: `npx tsx bench/admission-run.ts`.
import { measureDevices } from "./devices.ts";
import { show } from "./table.ts";
import { measureTopology } from "./topology.ts";

show([...(await measureTopology()), ...(await measureDevices())]);
