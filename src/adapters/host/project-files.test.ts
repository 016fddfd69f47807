import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type ProjectFiles, projectOfPath, takenIds, withoutProjects, withProject } from "./project-files.ts";

const FOREIGN: ProjectFiles = {
  projects: "# by hand\n42:/srv/data\n\nnonsense\n1048576:/just/below\n",
  projid: "# by hand\ndata:42\nvolume7:7\nno id\n",
};
const own = { id: 1_048_577, path: "/root/pods/a/volumes/kubernetes.io~empty-dir/x" };
const other = { id: 1_048_578, path: "/root/pods/a/volumes/kubernetes.io~empty-dir/y" };

describe("a directory is given a project", () => {
  const cases: { name: string; before: ProjectFiles; want: ProjectFiles }[] = [
    {
      name: "in files that are not there yet",
      before: { projects: "", projid: "" },
      want: { projects: `${own.id}:${own.path}\n`, projid: `volume${own.id}:${own.id}\n` },
    },
    {
      name: "behind what others wrote, which stays as it is",
      before: FOREIGN,
      want: {
        projects: `${FOREIGN.projects}${own.id}:${own.path}\n`,
        projid: `${FOREIGN.projid}volume${own.id}:${own.id}\n`,
      },
    },
    {
      name: "behind a last line without an end",
      before: { projects: "42:/srv", projid: "data:42" },
      want: { projects: `42:/srv\n${own.id}:${own.path}\n`, projid: `data:42\nvolume${own.id}:${own.id}\n` },
    },
    {
      name: "once: only the name is missing of one that died in between",
      before: { projects: `${own.id}:${own.path}\n`, projid: "" },
      want: { projects: `${own.id}:${own.path}\n`, projid: `volume${own.id}:${own.id}\n` },
    },
  ];
  for (const { name, before, want } of cases) {
    test(name, () => {
      const after = withProject(before, own);
      assert.deepEqual(after, want);
      assert.deepEqual(withProject(after, own), want, "again");
      assert.equal(projectOfPath(after, own.path), own.id);
    });
  }
});

describe("a directory loses its project", () => {
  const both = withProject(withProject(FOREIGN, own), other);
  const cases: { name: string; before: ProjectFiles; paths: readonly string[]; want: ProjectFiles }[] = [
    { name: "and all else stays", before: both, paths: [own.path], want: withProject(FOREIGN, other) },
    { name: "several at once", before: both, paths: [own.path, other.path], want: FOREIGN },
    { name: "that it never had", before: FOREIGN, paths: [own.path], want: FOREIGN },
    { name: "never one of an administrator, even by its path", before: FOREIGN, paths: ["/srv/data"], want: FOREIGN },
    { name: "nor the last id below the volumes' own", before: FOREIGN, paths: ["/just/below"], want: FOREIGN },
    {
      name: "whose id another directory has, too: the name stays",
      before: { projects: `${own.id}:/a\n${own.id}:/b\n`, projid: `volume${own.id}:${own.id}\n` },
      paths: ["/a"],
      want: { projects: `${own.id}:/b\n`, projid: `volume${own.id}:${own.id}\n` },
    },
    {
      name: "whose id has a name of somebody else: it stays",
      before: { projects: `${own.id}:/a\n`, projid: `mine:${own.id}\n` },
      paths: ["/a"],
      want: { projects: "", projid: `mine:${own.id}\n` },
    },
  ];
  for (const { name, before, paths, want } of cases) {
    test(name, () => assert.deepEqual(withoutProjects(before, new Set(paths)), want));
  }
});

describe("which ids are taken", () => {
  const cases: { name: string; files: ProjectFiles; want: readonly number[] }[] = [
    { name: "none", files: { projects: "", projid: "" }, want: [] },
    { name: "those of both files", files: FOREIGN, want: [42, 1_048_576, 7] },
    {
      name: "not what is no number, too large or negative",
      files: { projects: "x:/a\n99999999999:/b\n-5:/c\n4294967295:/d\n0x10:/e\n:/f\n", projid: "a\nb:\nc:1.5\n" },
      want: [],
    },
    { name: "with blanks around them", files: { projects: " 5 :/a\n", projid: "a: 6\n" }, want: [5, 6] },
  ];
  for (const { name, files, want } of cases) test(name, () => assert.deepEqual([...takenIds(files)], want));
});

test("a path may hold colons, and is compared as a whole", () => {
  const files = { projects: "1048577:/a:b\n1048578:/a\n" };
  assert.deepEqual(
    [projectOfPath(files, "/a:b"), projectOfPath(files, "/a"), projectOfPath(files, "/")],
    [...[1_048_577, 1_048_578, undefined]],
  );
});
