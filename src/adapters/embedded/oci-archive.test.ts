import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { demoImage, needsLoader, PAUSE_IMAGE, pauseImage } from "./local-images.ts";
import { buildOciArchive, imageArchitecture } from "./oci-archive.ts";
import { tar } from "./tar.ts";

/** Reads a tar back, checking what a reader checks. */
function untar(archive: Buffer): Map<string, { mode: number; type: string; link: string; data: Buffer }> {
  const members = new Map<string, { mode: number; type: string; link: string; data: Buffer }>();
  const word = (block: Buffer, at: number, length: number): string =>
    block
      .subarray(at, at + length)
      .toString("utf8")
      .replace(/\0.*$/s, "");
  for (let at = 0; archive[at] !== 0; ) {
    const block = archive.subarray(at, at + 512);
    const sum = block.reduce((total, byte, i) => total + (i >= 148 && i < 156 ? 32 : byte), 0);
    assert.equal(Number.parseInt(word(block, 148, 8), 8), sum, "header checksum");
    const size = Number.parseInt(word(block, 124, 12), 8);
    members.set(word(block, 0, 100), {
      mode: Number.parseInt(word(block, 100, 8), 8),
      type: word(block, 156, 1),
      link: word(block, 157, 100),
      data: archive.subarray(at + 512, at + 512 + size),
    });
    at += 512 + Math.ceil(size / 512) * 512;
  }
  assert.equal(archive.byteLength % 512, 0);
  return members;
}

const images = [pauseImage(Buffer.from("catatonit")), demoImage(Buffer.from("busybox"), ["sh", "ls", "busybox"])];

test("every blob has the name of its digest and every reference resolves", () => {
  const members = untar(buildOciArchive(images, "amd64"));
  const blob = (digest: string): Buffer => {
    const data = members.get(`blobs/sha256/${digest.replace("sha256:", "")}`)?.data;
    assert.ok(data, digest);
    assert.equal(createHash("sha256").update(data).digest("hex"), digest.replace("sha256:", ""));
    return data;
  };
  const index = JSON.parse(members.get("index.json")?.data.toString() ?? "");
  assert.deepEqual(
    index.manifests.map(
      (entry: { annotations: Record<string, string> }) => entry.annotations["io.containerd.image.name"],
    ),
    images.map((image) => image.name),
  );
  for (const entry of index.manifests) {
    const manifest = JSON.parse(blob(entry.digest).toString());
    const config = JSON.parse(blob(manifest.config.digest).toString());
    assert.equal(config.rootfs.diff_ids[0], manifest.layers[0].digest);
    assert.equal(blob(manifest.layers[0].digest).byteLength, manifest.layers[0].size);
  }
});

test("the same files give the same bytes, others do not", () => {
  const build = (): Buffer => buildOciArchive([pauseImage(Buffer.from("a"))], "amd64");
  assert.ok(build().equals(build()));
  assert.ok(!build().equals(buildOciArchive([pauseImage(Buffer.from("b"))], "amd64")));
});

test("the sandbox image runs catatonit as a pause process", () => {
  const image = pauseImage(Buffer.from("x"));
  assert.equal(image.name, PAUSE_IMAGE);
  assert.deepEqual(image.entrypoint, ["/catatonit", "-P"]);
});

test("the demo image has its applets as links, a world-writable /tmp and the users root and nobody", () => {
  const members = untar(tar(demoImage(Buffer.from("busybox"), ["sh", "busybox"]).files));
  assert.deepEqual([members.get("bin/sh")?.type, members.get("bin/sh")?.link], ["2", "busybox"]);
  assert.equal(members.get("bin/busybox")?.type, "0");
  assert.equal(members.get("tmp/")?.mode, 0o1777);
  assert.match(members.get("etc/passwd")?.data.toString() ?? "", /^root:.*\nnobody:x:65534:/);
});

test("a name that does not fit a tar header is refused", () => {
  assert.throws(() => tar([{ kind: "directory", path: "x".repeat(100), mode: 0o755 }]), RangeError);
});

const machines = [
  { node: "x64", want: "amd64" },
  { node: "arm64", want: "arm64" },
  { node: "riscv64", want: "riscv64" },
];
for (const { node, want } of machines) {
  test(`images for ${node} say ${want}`, () => assert.equal(imageArchitecture(node), want));
}

/** A 64-bit little-endian ELF file that is only its header and these program header types. */
function elf(...types: number[]): Buffer {
  const file = Buffer.alloc(64 + types.length * 56);
  file.write("\x7fELF\x02\x01", "latin1");
  file.writeUInt32LE(64, 32);
  file.writeUInt16LE(56, 54);
  file.writeUInt16LE(types.length, 56);
  types.forEach((type, i) => {
    file.writeUInt32LE(type, 64 + i * 56);
  });
  return file;
}
const programs = [
  { name: "a static program", file: elf(1, 1, 4), want: false },
  { name: "a program with an interpreter", file: elf(6, 3, 1), want: true },
  { name: "a script", file: Buffer.from(`#!/bin/sh\n${" ".repeat(100)}`), want: true },
];
for (const { name, file, want } of programs) {
  test(`${name} ${want ? "needs" : "needs no"} loader`, () => assert.equal(needsLoader(file), want));
}
