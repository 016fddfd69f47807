import { readFileSync } from "node:fs";
import { join } from "node:path";
import { hasSelinux } from "./node-facts.ts";

/** The labels that containers get by default on this machine. */
export interface SelinuxContexts {
  /** Of their processes. */
  readonly process: string;
  /** Of their files. */
  readonly file: string;
}

export interface SelinuxPlaces {
  readonly enforce: string;
  readonly contexts: string;
  readonly policies: string;
}

const PLACES: SelinuxPlaces = {
  enforce: "/sys/fs/selinux/enforce",
  contexts: "/usr/share/containers/selinux/contexts",
  policies: "/etc/selinux",
};

/** Undefined without SELinux, or if its policy knows no containers. */
export function readSelinuxContexts(places: SelinuxPlaces = PLACES): SelinuxContexts | undefined {
  if (!hasSelinux(places.enforce)) return undefined;
  const policy = settings(read(join(places.policies, "config")) ?? "").get("SELINUXTYPE") ?? "";
  const text = read(places.contexts) ?? read(join(places.policies, policy, "contexts/lxc_contexts")) ?? "";
  const found = settings(text);
  const [process = "", file = ""] = [found.get("process"), found.get("file")];
  return process === "" || file === "" ? undefined : { process, file };
}

/** Lines of `name = "value"`; comments begin with `#` or `;`. */
function settings(text: string): ReadonlyMap<string, string> {
  const lines = text.split("\n").map((line) => line.trim());
  return new Map(
    lines.flatMap((line) => {
      const at = line.indexOf("=");
      if (at === -1 || /^[#;]/.test(line)) return [];
      const value = line.slice(at + 1).trim();
      return [[line.slice(0, at).trim(), value.replace(/^"+|"+$/g, "")] as const];
    }),
  );
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}
