export { type OpenedServices, openServices, type ServicesOptions } from "./compose.ts";
