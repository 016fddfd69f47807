/** The ids that may be allocated to user namespaces of pods. */
export interface UserPool {
  readonly first: number;
  readonly length: number;
}

/** What is asked of the machine; `run` resolves to what a program printed, or undefined when there is no such program. */
export interface UserPoolDeps {
  /** The text of /etc/passwd. */
  readonly users: string;
  run(program: string, args: readonly string[]): Promise<string | undefined>;
}

/** The user whose subordinate ids are meant for pods, as in Kubernetes. */
const USER = "kubelet";

/**
 * The ids that the machine's administrator set aside for pods; undefined when there is no user `kubelet` or no
 * `getsubids`, and all ids above those of the host may be used. Rejects when they do not fit the settings.
 */
export async function findUserPool(
  deps: UserPoolDeps,
  settings: { readonly idsPerPod: number; readonly maxPods: number },
): Promise<UserPool | undefined> {
  if (!deps.users.split("\n").some((line) => line.startsWith(`${USER}:`))) return undefined;
  const uids = await deps.run("getsubids", [USER]);
  if (uids === undefined) return undefined;
  return userPool(uids, (await deps.run("getsubids", ["-g", USER])) ?? "", settings);
}

/** Parses the output of `getsubids` for users and groups. Throws an `Error` that says what to change. Pure. */
export function userPool(
  uids: string,
  gids: string,
  { idsPerPod, maxPods }: { readonly idsPerPod: number; readonly maxPods: number },
): UserPool {
  if (uids !== gids) throw new Error(`/etc/subuid and /etc/subgid differ for ${USER}; give both the same range`);
  const lines = uids.split("\n").filter((line) => line.trim() !== "");
  const match = lines.length === 1 ? new RegExp(`^0: ${USER} (\\d+) (\\d+)\\s*$`).exec(lines[0] ?? "") : null;
  if (match === null) throw new Error(`${USER} must have exactly one range in /etc/subuid, and has ${lines.length}`);
  const [first, length] = [Number(match[1]), Number(match[2])];
  if (first < idsPerPod || first % idsPerPod !== 0 || length % idsPerPod !== 0) {
    throw new Error(`the range ${first} ${length} of ${USER} in /etc/subuid must be multiples of ${idsPerPod}`);
  }
  if (length < maxPods * idsPerPod) {
    const need = maxPods * idsPerPod;
    throw new Error(`the range of ${USER} in /etc/subuid has ${length} ids, and ${maxPods} pods need ${need}`);
  }
  return { first, length };
}
