import type { Clock } from "../../lib/clock.ts";
import type { Logger } from "../../lib/log.ts";

/** Runs a program; `code` is undefined if it cannot be started or does not end in time. */
export type RunProgram = (
  file: string,
  args: readonly string[],
) => Promise<{ readonly code: number | undefined; readonly stderr: string }>;

/** The chain whose existence shows other components which kind of iptables the machine uses. */
const HINT = "KUBE-IPTABLES-HINT";
/** The chain that is looked for: when it is gone, somebody removed all rules. */
const CANARY = "KUBE-KUBELET-CANARY";
const FIREWALL = "KUBE-FIREWALL";
/** Drops packets for 127/8 from elsewhere, which kube-proxy's `route_localnet` would let in. */
const LOCAL_RULE = [
  ...["-m", "comment", "--comment", "block incoming localnet connections"],
  ...["--dst", "127.0.0.0/8", "!", "--src", "127.0.0.0/8"],
  ...["-m", "conntrack", "!", "--ctstate", "RELATED,ESTABLISHED,DNAT", "-j", "DROP"],
];
const CHECK_MS = 60_000;
const WAIT = ["-w", "5"];
const CANNOT_RUN = "cannot be run";

/** The programs, and whether they are for IPv4. */
const FAMILIES = [
  { program: "iptables", isIpv4: true },
  { program: "ip6tables", isIpv4: false },
] as const;

/**
 * Keeps the chains that other components of a node rely on (`makeIPTablesUtilChains`). Made at the start, and again when
 * somebody flushed them, which is checked once a minute. A machine without iptables is fine: nobody there looks for them.
 */
export class UtilChains {
  constructor(private readonly deps: { readonly run: RunProgram; readonly clock: Clock; readonly log: Logger }) {}

  /** Runs until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.deps;
    const usable: (typeof FAMILIES)[number][] = [];
    for (const family of FAMILIES) {
      const problem = await this.ensure(family);
      if (problem?.endsWith(CANNOT_RUN) !== true) usable.push(family);
      if (problem === undefined) continue;
      log.info("Failed to make iptables chains, components that look for them do without", { ...family, problem });
    }
    while (!signal.aborted) {
      await clock.sleep(CHECK_MS, { signal }).catch(() => undefined);
      for (const family of usable) {
        // Also those that could not be made: somebody may have held the lock for long, as at a boot.
        if (signal.aborted || (await this.isComplete(family))) continue;
        const problem = await this.ensure(family);
        if (problem === undefined) log.info("Made missing iptables chains", { program: family.program });
      }
    }
  }

  /** The last that is made is looked for, too: only then was all of it made. */
  private async isComplete({ program, isIpv4 }: (typeof FAMILIES)[number]): Promise<boolean> {
    if (!(await this.has(program, "mangle", CANARY))) return false;
    if (!isIpv4) return true;
    return (await this.deps.run(program, [...WAIT, "-t", "filter", "-C", FIREWALL, ...LOCAL_RULE])).code === 0;
  }

  /** Returns what the machine refused; undefined if all is there. */
  async ensure({ program, isIpv4 }: (typeof FAMILIES)[number]): Promise<string | undefined> {
    const firewall: [string, string][] = isIpv4 ? [["filter", FIREWALL]] : [];
    const canaries = ["mangle", "nat", "filter"].map((table): [string, string] => [table, CANARY]);
    for (const [table, chain] of [["mangle", HINT] as [string, string], ...firewall, ...canaries]) {
      const problem = await this.chain(program, table, chain);
      if (problem !== undefined) return problem;
    }
    if (!isIpv4) return undefined;
    for (const [how, chain, rule] of [
      ["-I", "OUTPUT", ["-j", FIREWALL]],
      ["-I", "INPUT", ["-j", FIREWALL]],
      ["-A", FIREWALL, LOCAL_RULE],
    ] as const) {
      const has = await this.deps.run(program, [...WAIT, "-t", "filter", "-C", chain, ...rule]);
      if (has.code === 0) continue;
      const added = await this.deps.run(program, [...WAIT, "-t", "filter", how, chain, ...rule]);
      if (added.code !== 0) return `${chain}: ${added.stderr.trim()}`;
    }
    return undefined;
  }

  private async chain(program: string, table: string, chain: string): Promise<string | undefined> {
    const made = await this.deps.run(program, [...WAIT, "-t", table, "-N", chain]);
    // It fails for a chain that is there already, too.
    if (made.code === 0 || (await this.has(program, table, chain))) return undefined;
    return `${table} ${chain}: ${made.stderr.trim() || `${program} ${CANNOT_RUN}`}`;
  }

  private async has(program: string, table: string, chain: string): Promise<boolean> {
    return (await this.deps.run(program, [...WAIT, "-t", table, "-S", chain])).code === 0;
  }
}
