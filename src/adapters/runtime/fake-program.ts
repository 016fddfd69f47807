import type { Timer } from "../../lib/clock.ts";
import type { ContainerConfig, ContainerStatus, SandboxConfig, SandboxSummary } from "./port.ts";

/** What a fake container does when it is started. Nothing given: runs for ever and ends with 143 on the stop signal. */
export interface FakeProgram {
  /** Ends by itself after so long. */
  readonly exitAfterMs?: number;
  readonly exitCode?: number;
  /** Does not end on the stop signal, only on the kill after the grace period. */
  readonly ignoresTerm?: boolean;
  /** How long it takes to end after the stop signal. */
  readonly termMs?: number;
  readonly termCode?: number;
  /** StartContainer fails with these words. */
  readonly failsToStart?: string;
  /** Answers execSync; without it every command succeeds with no output. */
  readonly exec?: (command: readonly string[]) => FakeExec;
}

/** What came of a command in a fake container. */
export interface FakeExec {
  readonly exitCode?: number;
  readonly stdout?: string;
  readonly stderr?: string;
  readonly takesMs?: number;
}

/** A container inside the fake. */
export interface FakeContainer {
  readonly id: string;
  readonly sandboxId: string;
  readonly config: ContainerConfig;
  readonly program: FakeProgram;
  status: ContainerStatus;
  /** Its own end, if one is scripted. */
  timer?: Timer;
  /** Called when it has stopped. */
  readonly onStop: Set<() => void>;
}

/** A sandbox inside the fake. */
export interface FakeSandbox {
  readonly config: SandboxConfig;
  readonly ips: readonly string[];
  summary: SandboxSummary;
}
