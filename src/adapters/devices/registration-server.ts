import { join } from "node:path";
import type { Abortable } from "../../lib/abort.ts";
import { method } from "../grpc/channel.ts";
import { type GrpcListener, listenGrpc, serve } from "../grpc/server.ts";
import { Empty, RegisterRequest } from "./generated/deviceplugin.ts";
import { type PluginDirectory, REGISTRATION_SOCKET } from "./plugin-directory.ts";

const register = method("/v1beta1.Registration/Register", RegisterRequest, Empty);

/** Cleans the directory and listens for plugins that register; `take` rejects with why it refuses one. */
export function listenForPlugins(
  directory: PluginDirectory,
  take: (request: RegisterRequest, options: Abortable) => Promise<void>,
): Promise<GrpcListener> {
  directory.clean();
  const path = join(directory.path, REGISTRATION_SOCKET);
  return listenGrpc({ path, mode: 0o755 }, [
    serve(register, async (request, options) => {
      await take(request, options);
      return {};
    }),
  ]);
}
