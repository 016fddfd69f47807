/** A problem of the manifest that keeps a sandbox or container from being made; shown as CreateContainerConfigError. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
}
