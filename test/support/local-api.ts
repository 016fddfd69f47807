import { newKey } from "../../src/adapters/kubeapi/certificates.ts";
import { ApiError } from "../../src/adapters/kubeapi/index.ts";
import { MemoryLog } from "../../src/adapters/objectlog/index.ts";
import { ApiServer } from "../../src/apiserver/index.ts";
import { manyListeners } from "../../src/lib/abort.ts";
import type { Clock } from "../../src/lib/clock.ts";
import { silent } from "../../src/lib/log.ts";

/** A local API that keeps nothing on disk: the real one, for tests of whatever talks to an API server. */
export async function testApiServer(
  clock: Clock,
  { log = new MemoryLog(), random = Math.random }: { log?: MemoryLog; random?: () => number } = {},
): Promise<ApiServer> {
  return ApiServer.open(
    { clock, log: silent, random, openLog: async () => ({ log, objects: [], revision: 0 }) },
    {
      signingKey: newKey(),
      authority: "-----BEGIN CERTIFICATE-----\ntest\n-----END CERTIFICATE-----\n",
      serviceSubnet: "10.96.0.0/16",
      nodePorts: [30_000, 32_767],
    },
    { signal: manyListeners().signal },
  );
}

/** The fields for which a creation is refused; none if it is not. Another error is thrown on. */
export function refusedFields(creation: Promise<unknown>): Promise<readonly (string | undefined)[] | undefined> {
  return creation.then(
    () => [],
    (error: unknown) => {
      if (!(error instanceof ApiError)) throw error;
      return error.status?.details?.causes?.map(({ field }) => field);
    },
  );
}
