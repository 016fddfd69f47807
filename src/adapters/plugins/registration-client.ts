import type { Abortable } from "../../lib/abort.ts";
import { clip } from "../../lib/bounded-text.ts";
import { GrpcChannel, method } from "../grpc/channel.ts";
import { InfoRequest, PluginInfo, RegistrationStatus, RegistrationStatusResponse } from "./generated/registration.ts";

const REGISTRATION = "/pluginregistration.Registration";

/** The methods of a plugin's registration service. */
export const registrationService = {
  getInfo: method(`${REGISTRATION}/GetInfo`, InfoRequest, PluginInfo),
  notifyRegistrationStatus: method(
    `${REGISTRATION}/NotifyRegistrationStatus`,
    RegistrationStatus,
    RegistrationStatusResponse,
  ),
} as const;

/** What a plugin says about itself. */
export interface PluginAnswer {
  readonly type: string;
  readonly name: string;
  /** Empty: the socket of the registration. */
  readonly endpoint: string;
  readonly versions: readonly string[];
}

/** A plugin has this long to accept the connection and to answer, in milliseconds; the original dials for 10 s. */
const INFO_MS = 10_000;
const NOTIFY_MS = 5000;
/** An introduction has a few hundred bytes. */
const MESSAGE_BYTES = 64 * 1024;
const MOST_VERSIONS = 64;
const TEXT_BYTES = 1024;

/** One registration with the plugin that listens on a socket: a connection of its own, closed by `close`. */
export class RegistrationClient {
  private readonly channel: GrpcChannel;

  constructor(socket: string) {
    this.channel = new GrpcChannel(socket, undefined, { hasOwnConnection: true, messageBytes: MESSAGE_BYTES });
  }

  /** Rejects with a coded error, also if the plugin does not answer in time. */
  async info({ signal }: Abortable): Promise<PluginAnswer> {
    const answer = await this.channel.unary(registrationService.getInfo, {}, { signal, timeoutMs: INFO_MS });
    const { type, name, endpoint } = answer;
    return {
      type: clip(type, TEXT_BYTES),
      name: clip(name, TEXT_BYTES),
      endpoint: clip(endpoint, TEXT_BYTES),
      versions: answer.supportedVersions.slice(0, MOST_VERSIONS).map((version) => clip(version, TEXT_BYTES)),
    };
  }

  /** Reports the outcome to the plugin; `error` is empty if it is registered. */
  async notify(error: string, { signal }: Abortable): Promise<void> {
    const status = { pluginRegistered: error === "", error: clip(error, 4 * TEXT_BYTES) };
    const call = { signal, timeoutMs: NOTIFY_MS };
    await this.channel.unary(registrationService.notifyRegistrationStatus, status, call);
  }

  close(): void {
    this.channel.close();
  }
}
