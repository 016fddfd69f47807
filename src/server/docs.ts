import { accessOf } from "./access.ts";
import type { ApiRoute } from "./api-route.ts";
import { API_ROUTES } from "./table.ts";

const INTRO = `# HTTP endpoints

<!-- Made by scripts/generate-docs.mjs from src/server/table.ts; do not edit. -->

The agent listens on up to four ports:

| port | options | what |
| --- | --- | --- |
| 10250 | \`port\`, \`address\`, \`enableServer\` | HTTPS; all endpoints below, for authorized clients |
| 10255 | \`readOnlyPort\`, \`address\` | HTTP without authentication; the endpoints below that have no gate. On loopback only under local names (\`localhost\`, \`127.0.0.1\`). With a configuration file off by default |
| 10248 | \`healthzPort\`, \`healthzBindAddress\` | HTTP; \`/healthz\` is 200 as long as the process lives, \`?verbose\` lists the checks |
| 4194 | \`cadvisorPort\`, \`address\` | the page ([page.md](page.md)), cAdvisor's API (\`/api/v1.0\` to \`/api/v2.1\`), \`/metrics\`, \`/validate/\` and \`/healthz\`; see [monitoring.md](monitoring.md). Off by default, on with \`kubelet up\`. HTTP on loopback, else HTTPS with the access of the main port |

\`kubelet up\` listens on 127.0.0.1 and rejects anonymous requests by default. So does an agent without a kubeconfig and
without a configuration file.

## Authentication and authorization

A client presents a certificate of \`authentication.x509.clientCAFile\`, or a bearer token that the API server knows
(\`authentication.webhook\`), or nothing (\`authentication.anonymous\`). Wrong credentials are 401, also where
anonymous requests are allowed. With \`authorization.mode: Webhook\` the API server is asked whether the user may use the verb on one of the
sub-resources of \`nodes\`; the first that it allows is enough. A path that does not exist is 404 for everybody; whether a
pod exists is visible only to authorized clients.

\`kubelet up\` has no API server to ask, so its mode is \`AlwaysAllow\` by default: \`--client-ca-file\` admits the clients
whose certificate this CA signed. \`kubelet exec\`, \`logs\` and \`port-forward\` use the agent's unix socket instead.

The certificate of the port is \`tlsCertFile\`, else a self-made pair (\`kubelet.crt\`, \`kubelet.key\`) in the certificate
directory. Changed files are taken over without ending connections.

## Endpoints of 10250

| path | methods | verb | sub-resource of nodes | gate | what |
| --- | --- | --- | --- | --- | --- |
`;

const STREAMING = `
exec, attach and port-forward hand the upgraded connection to the container runtime byte for byte: SPDY/3.1
(\`v4.channel.k8s.io\` and older, \`portforward.k8s.io\`) and WebSocket up to \`v4.channel.k8s.io\`. The agent sets no time
limit on it. They need the verb \`create\` on every transport; the original asks for \`get\` when a WebSocket comes as GET.
WebSocket v5 is not spoken, and not declared in the node's status, so the API server translates it to SPDY.

\`/debug/pprof/\` gives V8's profiles (for a browser's developer tools), not those of Go.

Where a gate is closed, the endpoint answers 405, or 404 for \`/configz\`, \`/checkpoint\`, \`/flagz\`, \`/statusz\`
and \`/debug/flags/v\`.
`;

/** Generates docs/http-api.md from the route table. */
export function httpApiPage(): string {
  const rows = API_ROUTES.filter(({ summary }) => summary !== undefined).map(row);
  return `${INTRO}${rows.join("")}${STREAMING}`;
}

function row({ path, methods, gate, summary, query }: ApiRoute): string {
  const accesses = (methods === "any" ? ["GET"] : methods).map((method) => accessOf(method, path));
  const verbs = [...new Set(accesses.map(({ verb }) => verb))];
  const cells = [
    `\`${path.replaceAll(/:(\w+)/g, "{$1}").replace("*", "{path}")}\``,
    methods === "any" ? "any" : methods.join(", "),
    methods === "any" ? "by method" : verbs.join(", "),
    (accesses[0]?.subresources ?? []).join(" or "),
    gate.name === "" ? "" : `\`${gate.name}\``,
    `${summary ?? ""}${query === undefined ? "" : ` Query: ${query}.`}`,
  ];
  return `| ${cells.join(" | ")} |\n`;
}
