import type { Abortable } from "../../lib/abort.ts";
import { GrpcChannel, type Method, method } from "../grpc/channel.ts";
import type { ReceivedMessage } from "../grpc/received-message.ts";
import * as wire from "./generated/deviceplugin.ts";

const SERVICE = "/v1beta1.DevicePlugin";
/** Bytes of the largest message of a plugin, as in Kubernetes: it is decoded in one piece. */
const MESSAGE_BYTES = 4 * 1024 * 1024;

/** Fields of a list: a device on four NUMA nodes has 12, and of these 4 MiB have no more than 100,000. */
const LIST_FIELDS = 1_000_000;
/** Fields of any other answer: more than an allocation that is kept, or 100,000 preferred devices, can have. */
const ANSWER_FIELDS = 150_000;

const methods = {
  options: answered(method(`${SERVICE}/GetDevicePluginOptions`, wire.Empty, wire.DevicePluginOptions)),
  listAndWatch: {
    ...method(`${SERVICE}/ListAndWatch`, wire.Empty, wire.ListAndWatchResponse),
    mostFields: LIST_FIELDS,
  },
  prefer: answered(
    method(`${SERVICE}/GetPreferredAllocation`, wire.PreferredAllocationRequest, wire.PreferredAllocationResponse),
  ),
  allocate: answered(method(`${SERVICE}/Allocate`, wire.AllocateRequest, wire.AllocateResponse)),
  preStart: answered(
    method(`${SERVICE}/PreStartContainer`, wire.PreStartContainerRequest, wire.PreStartContainerResponse),
  ),
};

function answered<Request, Response>(of: Method<Request, Response>): Method<Request, Response> {
  return { ...of, mostFields: ANSWER_FIELDS };
}

/** A call with its deadline in milliseconds. */
export interface PluginCallOptions extends Abortable {
  readonly timeoutMs: number;
}

/** A list of devices as a plugin sent it. */
export type DeviceList = Pick<ReceivedMessage<wire.ListAndWatchResponse>, "bytes" | "read">;

/** A device plugin on its socket. Calls reject with a `RuntimeError`. */
export interface PluginClient {
  options(options: PluginCallOptions): Promise<wire.DevicePluginOptions>;
  /** Complete lists of devices, each received when it is asked for, until the plugin ends the stream or the signal aborts. */
  listAndWatch(options: Abortable): AsyncIterable<DeviceList>;
  prefer(
    choice: { readonly offered: readonly string[]; readonly included: readonly string[]; readonly size: number },
    options: PluginCallOptions,
  ): Promise<readonly string[]>;
  /** Answers undefined if the plugin's answer has no container. */
  allocate(ids: readonly string[], options: PluginCallOptions): Promise<wire.ContainerAllocateResponse | undefined>;
  preStart(ids: readonly string[], options: PluginCallOptions): Promise<void>;
  /** Ends the connection when the calls in flight have ended. */
  close(): void;
  /** Ends the connection; calls in flight fail. */
  abort(): void;
}

/** Opens a connection of its own to a plugin; nothing is sent before the first call. */
export function connectPlugin(socket: string): PluginClient {
  const channel = new GrpcChannel(`unix://${socket}`, undefined, {
    hasOwnConnection: true,
    messageBytes: MESSAGE_BYTES,
  });
  return {
    options: (options) => channel.unary(methods.options, {}, options),
    listAndWatch: (options) => channel.messages(methods.listAndWatch, {}, options),
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
    abort: () => channel.abort(),
  };
}
