import type { Abortable } from "../lib/abort.ts";

/** The kinds of plugins that a node knows. */
export type PluginType = "CSIPlugin" | "DevicePlugin" | "DRAPlugin";

/** A plugin that introduced itself on a socket below `plugins_registry`. */
export interface RegisteredPlugin {
  readonly name: string;
  /** The socket of its own service. */
  readonly endpoint: string;
  readonly versions: readonly string[];
  /** The socket of its registration: two instances of one plugin differ in it. */
  readonly socket: string;
}

/** What a feature does with the plugins of its type. Calls for one socket never overlap. */
export interface PluginHandler {
  /** Throws if the plugin cannot be used: it is told why, and asked again with back-off. */
  validate(plugin: RegisteredPlugin): void;
  /** Takes the plugin into use; a rejection refuses it. Called again for the same name when another instance comes. */
  register(plugin: RegisteredPlugin, options: Abortable): void | Promise<void>;
  /** The socket was removed or replaced, or the plugin could not be told that it is registered. Must not throw. */
  deregister(plugin: RegisteredPlugin): void;
}
