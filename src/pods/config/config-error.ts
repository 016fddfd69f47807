export { ConfigError } from "../../model/config-error.ts";
