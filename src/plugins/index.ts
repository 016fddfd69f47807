export { composePlugins } from "./compose.ts";
export type { PluginHandler, PluginType, RegisteredPlugin } from "./handler.ts";
export type { PluginRegistry } from "./plugin-registry.ts";
