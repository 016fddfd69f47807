import assert from "node:assert/strict";
import { test } from "node:test";
import { agentOptions } from "./agent-options.ts";
import { allFlags, encodeConfiguration } from "./encode.ts";
import { parseOptions } from "./parse.ts";

test("every flag is shown with its value, and secrets are masked", () => {
  const { values } = parseOptions(["--max-pods=7", "--manifest-url-header=token:hidden"], agentOptions);
  const flags = allFlags(values);
  assert.ok(flags.includes('--max-pods="7"'), flags.join(" "));
  assert.ok(flags.includes('--manifest-url-header="<masked>"'));
  assert.ok(!flags.join(" ").includes("hidden"));
});

test("a masked map keeps its shape, so that a typed client can decode the configuration", () => {
  const { values } = parseOptions(["--manifest-url-header=token:hidden"], agentOptions);
  const { staticPodURLHeader } = encodeConfiguration(values, { masks: true });
  assert.deepEqual(Object.values(staticPodURLHeader as object), [["<masked>"]]);
});
