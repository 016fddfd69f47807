// Called by run.ts with a directory: the rows of volumes.ts as JSON, from a process that has done nothing else.
import { measureVolumes } from "./volumes.ts";

process.stdout.write(JSON.stringify(await measureVolumes(process.argv[2] ?? "/var/tmp")));
