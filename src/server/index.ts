export { type AgentPorts, composePorts, type ServerDeps } from "./compose.ts";
export { httpApiPage } from "./docs.ts";
