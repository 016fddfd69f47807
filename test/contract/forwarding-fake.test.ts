import { FakeForwardingTable } from "../../src/adapters/nftables/fake.ts";
import { forwardingSuite } from "./forwarding-suite.ts";

forwardingSuite("fake", async () => {
  const table = new FakeForwardingTable();
  return {
    table,
    restarted: () => {
      const next = new FakeForwardingTable();
      Object.defineProperty(next, "kernel", {
        get: () => table.kernel,
        set: (kernel) => {
          table.kernel = kernel;
        },
      });
      return next;
    },
    flush: async () => {
      table.kernel = undefined;
    },
    close: async () => undefined,
  };
});
