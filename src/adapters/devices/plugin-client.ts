import type { Abortable } from "../../lib/abort.ts";
import { GrpcChannel, method } from "../grpc/channel.ts";
import * as wire from "./generated/deviceplugin.ts";

const SERVICE = "/v1beta1.DevicePlugin";

const methods = {
  options: method(`${SERVICE}/GetDevicePluginOptions`, wire.Empty, wire.DevicePluginOptions),
  listAndWatch: method(`${SERVICE}/ListAndWatch`, wire.Empty, wire.ListAndWatchResponse),
  prefer: method(
    `${SERVICE}/GetPreferredAllocation`,
    wire.PreferredAllocationRequest,
    wire.PreferredAllocationResponse,
  ),
  allocate: method(`${SERVICE}/Allocate`, wire.AllocateRequest, wire.AllocateResponse),
  preStart: method(`${SERVICE}/PreStartContainer`, wire.PreStartContainerRequest, wire.PreStartContainerResponse),
};

/** A call with its deadline in milliseconds. */
export interface PluginCallOptions extends Abortable {
  readonly timeoutMs: number;
}

/** A device plugin on its socket. Calls reject with a `RuntimeError`. */
export interface PluginClient {
  options(options: PluginCallOptions): Promise<wire.DevicePluginOptions>;
  /** Complete lists of devices, until the plugin ends the stream or the signal aborts. */
  listAndWatch(options: Abortable): AsyncIterable<readonly wire.Device[]>;
  prefer(
    choice: { readonly offered: readonly string[]; readonly included: readonly string[]; readonly size: number },
    options: PluginCallOptions,
  ): Promise<readonly string[]>;
  /** Answers undefined if the plugin's answer has no container. */
  allocate(ids: readonly string[], options: PluginCallOptions): Promise<wire.ContainerAllocateResponse | undefined>;
  preStart(ids: readonly string[], options: PluginCallOptions): Promise<void>;
  /** Ends the connection; calls in flight fail. */
  close(): void;
}

/** Opens a connection of its own to a plugin; nothing is sent before the first call. */
export function connectPlugin(socket: string): PluginClient {
  const channel = new GrpcChannel(`unix://${socket}`, undefined, { hasOwnConnection: true });
  return {
    options: (options) => channel.unary(methods.options, {}, options),
    async *listAndWatch(options) {
      for await (const { devices } of channel.stream(methods.listAndWatch, {}, options)) yield devices;
    },
    async prefer({ offered, included, size }, options) {
      const request = {
        availableDeviceIDs: [...offered],
        mustIncludeDeviceIDs: [...included],
        allocationSize: size,
      };
      const answer = await channel.unary(methods.prefer, { containerRequests: [request] }, options);
      return answer.containerResponses[0]?.deviceIDs ?? [];
    },
    async allocate(ids, options) {
      const request = { containerRequests: [{ devicesIds: [...ids] }] };
      return (await channel.unary(methods.allocate, request, options)).containerResponses[0];
    },
    async preStart(ids, options) {
      await channel.unary(methods.preStart, { devicesIds: [...ids] }, options);
    },
    close: () => channel.close(),
  };
}
