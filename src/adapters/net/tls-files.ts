import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { type Abortable, AbortScope } from "../../lib/abort.ts";
import type { Clock } from "../../lib/clock.ts";
import { messageOf } from "../../lib/errors.ts";
import { watchPath } from "../../lib/file-watch.ts";
import { type Live, LiveValue } from "../../lib/live.ts";
import type { Logger } from "../../lib/log.ts";
import { parseAuthorities } from "./client-chain.ts";
import type { ServingPair } from "./self-signed.ts";
import type { TlsMaterial } from "./tls-listener.ts";

/** The paths of the TLS files; empty if a file is not used. */
export interface TlsFileNames {
  readonly certificate: string;
  readonly key: string;
  readonly clientAuthorities: string;
}

export interface TlsFilesDeps {
  readonly clock: Clock;
  readonly log: Logger;
  /** The serving pair if no certificate file is set. It may come late (a signed one) and change. */
  readonly pair?: Live<ServingPair | undefined>;
}

/** Interval in milliseconds at which the files are read again: watches may miss changes. */
const LOOK_MS = 60_000;

/** Certificate, key and client authorities from files, reloaded when they change. Invalid files keep the previous ones. */
export class TlsFiles {
  readonly material: Live<TlsMaterial>;
  private readonly value = new LiveValue<TlsMaterial>({ certificate: "", key: "", clientAuthorities: "" });
  private told = "";

  constructor(
    private readonly deps: TlsFilesDeps,
    private readonly names: Live<TlsFileNames>,
  ) {
    this.material = this.value;
  }

  /** Loads everything once. Rejects if a file is invalid, so that the start reports it. */
  async load(): Promise<void> {
    this.set(await this.read());
  }

  /** Follows the files until the signal aborts. */
  async run({ signal }: Abortable): Promise<void> {
    this.deps.pair?.onChange(() => void this.look(), { signal });
    while (!signal.aborted) {
      const scope = new AbortScope([signal]);
      try {
        const names = this.names.current;
        let wake: () => void = () => undefined;
        const changed = new Promise<void>((resolve) => {
          wake = resolve;
        });
        signal.addEventListener("abort", wake, { once: true });
        this.names.onChange(wake, scope);
        for (const path of new Set([names.certificate, names.key, names.clientAuthorities])) {
          if (path !== "") await watchPath(path, { signal: scope.signal, clock: this.deps.clock, onChange: wake });
        }
        await this.look();
        const timer = this.deps.clock.after(LOOK_MS, wake);
        await changed;
        timer.cancel();
        signal.removeEventListener("abort", wake);
      } finally {
        scope.abort();
        scope.dispose();
      }
    }
  }

  private async look(): Promise<void> {
    try {
      this.set(await this.read());
      this.told = "";
    } catch (error) {
      const problem = messageOf(error);
      if (problem !== this.told)
        this.deps.log.warn("Failed to load certificate files, keeping the previous ones", { problem });
      this.told = problem;
    }
  }

  private set(next: TlsMaterial): void {
    const now = this.value.current;
    const isSame =
      next.certificate === now.certificate && next.key === now.key && next.clientAuthorities === now.clientAuthorities;
    if (!isSame) this.value.set(next);
  }

  private async read(): Promise<TlsMaterial> {
    const { certificate, key, clientAuthorities } = this.names.current;
    const authorities = clientAuthorities === "" ? "" : await text(clientAuthorities);
    if (clientAuthorities !== "" && parseAuthorities(authorities).length === 0) {
      throw new Error(`client CA ${clientAuthorities}: no certificate found`);
    }
    const pair =
      certificate === ""
        ? (this.deps.pair?.current ?? { certificate: "", key: "" })
        : { certificate: await text(certificate), key: await text(key) };
    if (pair.certificate !== "") check(pair, certificate === "" ? "the serving certificate" : certificate);
    return { ...pair, clientAuthorities: authorities };
  }
}

async function text(path: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    throw new Error(`read ${path}: ${messageOf(error)}`, { cause: error });
  }
}

/** Checks that certificate and key match: while they are being replaced they may not. */
function check(pair: ServingPair, name: string): void {
  if (!new X509Certificate(pair.certificate).checkPrivateKey(createPrivateKey(pair.key))) {
    throw new Error(`${name}: the private key does not match the certificate`);
  }
}
