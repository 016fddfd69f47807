import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { basename, dirname, join } from "node:path";
import { buildOciArchive, imageArchitecture } from "../../src/adapters/embedded/oci-archive.ts";
import { kubeBinDir } from "./control-plane.ts";

type Image = Parameters<typeof buildOciArchive>[0][number];
type ImageFile = Image["files"][number];

/** Where kubeadm is told to take its images from; it names no registry that exists. */
export const IMAGE_REPOSITORY = "localhost/kubelet-ts-test";

const cache = join(process.env["XDG_CACHE_HOME"] || join(homedir(), ".cache"), "kubelet-ts");
/** As kubeadm of this version asks for them; see the scripts that build them. */
const ETCD = join(process.env["ETCD_BIN_DIR"] || join(cache, "etcd-3.6.8"), "etcd");
const COREDNS = join(process.env["COREDNS_BIN_DIR"] || join(cache, "coredns-1.14.2"), "coredns");

/** Returns the programs that the images are made of, by the last part of the image's name. */
export function imagePrograms(): Readonly<Record<string, string>> {
  const kubernetes = ["kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy"];
  return {
    ...Object.fromEntries(kubernetes.map((name) => [name, join(kubeBinDir(), name)])),
    etcd: ETCD,
    coredns: COREDNS,
    pause: find("catatonit"),
    busybox: find("busybox"),
  };
}

/** Writes an image for each of these names (`…/kube-proxy:v1.36.3`) as an archive into `dir`; returns the paths. */
export function writeImages(names: readonly string[], dir: string): Map<string, string> {
  const archives = new Map<string, string>();
  for (const name of names) {
    const program = basename(name).replace(/:.*$/, "");
    const path = join(dir, `${program}.tar`);
    writeFileSync(path, buildOciArchive([imageOf(name, program)], imageArchitecture(process.arch)));
    archives.set(program, path);
  }
  return archives;
}

function imageOf(name: string, program: string): Image {
  const path = imagePrograms()[program];
  if (path === undefined) throw new Error(`kubeadm asks for ${name}, which is not built here`);
  const more = program === "kube-proxy" ? iptablesFiles() : program === "busybox" ? busyboxLinks() : [];
  const folders = ["usr", "usr/local", "usr/local/bin", "tmp"].filter(
    (folder) => !more.some((file) => file.path === folder),
  );
  return {
    name,
    files: [
      ...folders.map((folder) => ({ kind: "directory", path: folder, mode: 0o755 }) as const),
      ...more,
      { kind: "file", path: `usr/local/bin/${program}`, mode: 0o755, data: readFileSync(path) },
      // CoreDNS is started by its entry point at the root of its image, all others by their names.
      { kind: "symlink", path: program, target: `usr/local/bin/${program}` },
    ],
    // The sandbox's process waits and reaps.
    entrypoint: program === "pause" ? [`/${program}`, "-P"] : [`/${program}`],
    env: ["PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
  };
}

function busyboxLinks(): readonly ImageFile[] {
  const names = ["sh", "sleep", "cat", "echo", "mkdir", "hostname", "timeout", "wget"];
  return [
    { kind: "directory", path: "bin", mode: 0o755 },
    ...names.map((name) => ({ kind: "symlink", path: `bin/${name}`, target: "/usr/local/bin/busybox" }) as const),
  ];
}

/** Returns iptables of this machine with all that it loads: the small Debian root that kube-proxy needs. */
function iptablesFiles(): readonly ImageFile[] {
  const program = realpathSync(find("iptables"));
  const folder =
    librariesOf(program)
      .find((path) => path.includes("libxtables"))
      ?.replace(/\/[^/]*$/, "/xtables") ?? "";
  const plugIns = readdirSync(realpathSync(folder)).map((name) => join(folder, name));
  const libraries = new Set(librariesOf(program, ...plugIns));
  const contents = new Map<string, ImageFile>();
  const add = (path: string): void => {
    for (let parent = dirname(path).slice(1); parent !== "" && parent !== "."; parent = dirname(parent))
      contents.set(parent, { kind: "directory", path: parent, mode: 0o755 });
    contents.set(path.slice(1), { kind: "file", path: path.slice(1), mode: 0o755, data: readFileSync(path) });
  };
  // Debian's /lib is a link to /usr/lib: here both are folders, and what is asked for below /lib is below /lib.
  for (const path of [...libraries, ...plugIns, ...plugIns.map((one) => one.replace(/^\/lib\//, "/usr/lib/"))])
    add(path);
  add(`/usr/sbin/${basename(program)}`);
  const names = ["iptables", "iptables-save", "iptables-restore"].flatMap((name) => [
    ...[name, name.replace("iptables", "ip6tables")],
  ]);
  const links = names.map(
    (name) => ({ kind: "symlink", path: `usr/sbin/${name}`, target: basename(program) }) as const,
  );
  const entries = [...contents.values(), ...links];
  return entries.sort((a, b) => (a.path < b.path ? -1 : 1));
}

/** Returns the files that programs and libraries are linked with, the dynamic loader too. */
function librariesOf(...files: readonly string[]): string[] {
  const output = execFileSync("ldd", files, { encoding: "utf8" });
  return [...output.matchAll(/(\/\S+) \(0x/g)].map(([, path = ""]) => path);
}

function find(name: string): string {
  return execFileSync("sh", ["-c", `PATH=$PATH:/usr/sbin:/sbin; command -v ${name}`], { encoding: "utf8" }).trim();
}
