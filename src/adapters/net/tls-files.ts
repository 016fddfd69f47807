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

/** Where the pieces of TLS lie; an empty name means that the piece is not wanted. */
export interface TlsFileNames {
  readonly certificate: string;
  readonly key: string;
  readonly clientAuthorities: string;
}

export interface TlsFilesDeps {
  readonly clock: Clock;
  readonly log: Logger;
  /** What is shown when no certificate file is named. It may come late (a signed one) and change. */
  readonly pair?: Live<ServingPair | undefined>;
}

/** Watches miss things (network file systems, no watches left): everything is read again this often. */
const LOOK_MS = 60_000;

/** Certificate, key and client authorities from files, read again when they change. What is bad keeps the last good. */
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

  /** Reads everything once. Rejects with what cannot be used: the start of the agent should say so. */
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

/** Certificate and key belong together: written one after the other, they may not for a moment. */
function check(pair: ServingPair, name: string): void {
  if (!new X509Certificate(pair.certificate).checkPrivateKey(createPrivateKey(pair.key))) {
    throw new Error(`${name}: the private key does not match the certificate`);
  }
}
