/** A script of kubectl commands on the local API and on a real control plane: they print the same. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { FILES } from "../contract/kubectl-files.ts";
import { SCRIPT } from "../contract/kubectl-script.ts";
import { until } from "../integration/support/until.ts";
import { skipWithoutControlPlane } from "../support/control-plane.ts";
import { normalOutput, type Place, TwoServers } from "../support/two-servers.ts";

skipWithoutControlPlane();

describe("kubectl prints the same on the local API and on the original", () => {
  let servers: TwoServers;
  let real: Place;
  let own: Place;

  before(async () => {
    ({ servers, real, own } = await TwoServers.start({ files: FILES }));
  });
  after(() => servers?.close());

  for (const [index, command] of SCRIPT.entries()) {
    test(`${index + 1}: kubectl ${command.line}`, async () => {
      const [expected, found] = await Promise.all([servers.run(real, command), servers.run(own, command)]);
      if (command.line === "create namespace shop") await settled();
      if (command.differs !== undefined) return;
      assert.equal(normalOutput(own, found), normalOutput(real, expected));
    });
  }

  test("the script has 80 commands at least that are compared", () => {
    assert.ok(SCRIPT.filter(({ differs }) => differs === undefined).length >= 80);
  });

  for (const selected of ["", " -l on=yes", " -o name"]) {
    test(`get --watch${selected} prints what happens, as it happens`, async () => {
      const watched = await Promise.all([real, own].map((place) => watchedOutput(place, selected)));
      assert.equal(watched[1], watched[0]);
      assert.match(watched[0] ?? "", /DELETED|configmap\/seen/);
    });
  }

  /** What a watch printed while a ConfigMap was created, changed and deleted after it had begun. */
  async function watchedOutput(place: Place, selected: string): Promise<string> {
    const run = (line: string) => servers.run(place, { line: `${line} -n shop` });
    await run("create configmap first --from-literal=a=b");
    await run("label configmap first on=yes");
    const flags = selected === " -o name" ? "" : " --output-watch-events";
    const fields = "--field-selector=metadata.name!=kube-root-ca.crt";
    const watch = servers.start(place, { line: `get configmaps -n shop --watch ${fields}${flags}${selected}` });
    try {
      await watch.says("first");
      // An age that is counted from the beginning of the watch would be negative.
      await new Promise((resolve) => setTimeout(resolve, 3000));
      await run("create configmap seen --from-literal=a=b");
      await run("label configmap seen on=yes");
      await run("label configmap seen on=no --overwrite");
      await run("delete configmap seen");
      await run("delete configmap first");
      const last = selected === " -o name" ? /(configmap\/first[^]*){2}/ : /DELETED +first/;
      await watch.says(last);
    } finally {
      await watch.end("SIGTERM");
    }
    return normalOutput(place, { ...(await watch.ended), code: 0 });
  }

  /** A controller makes these in a cluster, a moment later. */
  async function settled(): Promise<void> {
    await until("the account of the namespace", async () => {
      const { code } = await servers.run(real, {
        line: "get -n shop serviceaccount/default configmap/kube-root-ca.crt",
      });
      return code === 0;
    });
  }
});
