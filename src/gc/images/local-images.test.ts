import assert from "node:assert/strict";
import { test } from "node:test";
import { LocalImages, recordName } from "./local-images.ts";

const of = (id: string) => ({ id, tags: [], digests: [], sizeBytes: 1, username: "", pinned: false });

test("an image that the agent pulled, now or before, is not local", async () => {
  const listed: string[] = [];
  const list = async (directory: string): Promise<readonly string[]> => {
    listed.push(directory);
    return [recordName("sha256:before")];
  };
  const local = new LocalImages({ list }, "/root");
  local.recordPull("sha256:now");
  const isLocal = await local.test();
  assert.deepEqual(listed, ["/root/image_manager/pulled"]);
  assert.deepEqual([isLocal(of("sha256:before")), isLocal(of("sha256:now"))], [false, false]);
  assert.equal(isLocal(of("sha256:imported")), true);
  local.recordRemoval("sha256:now");
  assert.equal(isLocal(of("sha256:now")), true);
});

test("a record is named as Kubernetes names it", () => {
  assert.equal(recordName("a"), "sha256-ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb");
});
