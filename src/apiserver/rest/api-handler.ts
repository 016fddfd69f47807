import { jsonAnswer, type RouteAnswer, type RouteRequest, textAnswer } from "../../adapters/net/http-route.ts";
import { LogError } from "../../adapters/objectlog/index.ts";
import type { Logger } from "../../lib/log.ts";
import { versionInfo } from "../../lib/version.ts";
import { ADMINISTRATORS, accessDenied, isAllowed, questionOf } from "../auth/access.ts";
import { actingUser } from "../auth/impersonation.ts";
import type { ReviewResource } from "../auth/reviews.ts";
import { Discovery } from "../discovery/discovery.ts";
import type { RequestUser } from "../kinds/kind.ts";
import { handleManifests } from "../manifests/manifest-endpoint.ts";
import { openApiV2 } from "../openapi/openapi-v2.ts";
import { openApiDocument, openApiIndex } from "../openapi/openapi-v3.ts";
import { decodeTree, TypeMismatch } from "../schema/decode-tree.ts";
import { badRequest, internalError, methodNotAllowed, StatusError } from "../status/status-error.ts";
import type { ApiCall } from "./api-call.ts";
import { type ApiPath, readApiPath } from "./api-path.ts";
import { negotiateOutput } from "./negotiate.ts";
import { readFlag } from "./query.ts";
import { readParsedBody, readSmallBody } from "./read-body.ts";
import { statusAnswer, textAnswerOf } from "./render.ts";
import { handleResource, type ResourceDeps } from "./resource-handler.ts";

export interface ApiHandlerDeps extends ResourceDeps {
  readonly log: Logger;
  readonly reviews: readonly ReviewResource[];
  /** Groups that are measured and not stored, such as metrics. */
  readonly measured?: readonly MeasuredGroup[];
}

/** Resources that are measured when somebody asks. */
export interface MeasuredGroup {
  readonly resources: ConstructorParameters<typeof Discovery>[0]["virtual"];
  /** Undefined if it does not serve the path. Rejects with `StatusError`. */
  handle(path: ApiPath, call: ApiCall): Promise<RouteAnswer> | undefined;
}

const HEALTH = ["/healthz", "/livez", "/readyz"];
/** As long as a header of a warning may be: clients refuse larger heads. */
const MOST_WARNING_BYTES = 4096;

/** Answers every request to the API. Never rejects, except for an abort of the request. */
export class ApiHandler {
  private readonly discovery: Discovery;

  constructor(private readonly deps: ApiHandlerDeps) {
    const virtual = [...deps.reviews, ...(deps.measured ?? []).flatMap(({ resources }) => resources)];
    this.discovery = new Discovery({ ...deps, virtual });
  }

  async handle(request: RouteRequest, user: RequestUser): Promise<RouteAnswer> {
    const warnings: string[] = [];
    const warn = (text: string): void => void warnings.push(text);
    const answer = await this.answerAs(request, user, warn).catch((error: unknown) => this.failure(error, request));
    return warnings.length === 0
      ? answer
      : { ...answer, headers: { ...answer.headers, warning: warningHeader(warnings) } };
  }

  private async answerAs(request: RouteRequest, user: RequestUser, warn: ApiCall["warn"]): Promise<RouteAnswer> {
    return this.answer({ request, user: actingUser(user, request.headers), warn });
  }

  private async answer(call: ApiCall): Promise<RouteAnswer> {
    const { path } = call.request;
    if (HEALTH.some((health) => path === health || path.startsWith(`${health}/`))) return textAnswer(200, "ok");
    const document = this.document(call.request);
    if (document !== undefined) {
      if (call.request.method !== "GET") throw methodNotAllowed();
      return document;
    }
    const manifests = this.manifests(call);
    if (manifests !== undefined) return manifests;
    const named = readApiPath(path);
    if (named === undefined || !this.discovery.has(named.group, named.version))
      return textAnswer(404, "404 page not found\n");
    const question = questionOf(named, call.request.method, readFlag(call.request.query, "watch") === true);
    if (!isAllowed(call.user, question)) throw accessDenied(call.user, question);
    for (const group of this.deps.measured ?? []) {
      const measured = group.handle(named, call);
      if (measured !== undefined) return measured;
    }
    const review = this.deps.reviews.find((one) => one.group === named.group && one.plural === named.plural);
    return review === undefined ? handleResource(this.deps, named, call) : this.review(review, call);
  }

  /** The simple way in, for administrators; undefined for any other path. */
  private manifests(call: ApiCall): Promise<RouteAnswer> | undefined {
    if (!call.request.path.startsWith("/manifests")) return undefined;
    const question = { verb: "create", group: "", resource: "pods", subresource: "", namespace: "", name: "" };
    if (!isAllowed(call.user, question)) throw accessDenied(call.user, question);
    return handleManifests(this.deps, call);
  }

  /** Version, discovery and schemas; undefined for any other path. */
  private document(request: RouteRequest): Promise<RouteAnswer> | RouteAnswer | undefined {
    const { path } = request;
    const parts = path.split("/").filter((part) => part !== "");
    const [root, ...rest] = parts;
    if (root === "version" && rest.length === 0) return jsonAnswer(200, serverVersion());
    if (root === "openapi") return this.openApi(rest, request.headers.accept);
    if (root !== "api" && root !== "apis") return undefined;
    const format = negotiateOutput(request.headers.accept);
    if (rest.length === 0) {
      if (format.as === "discovery") {
        const type = `application/json;g=apidiscovery.k8s.io;v=${format.version};as=APIGroupDiscoveryList`;
        return { ...jsonAnswer(200, this.discovery.aggregated(root === "api", format.version)), type };
      }
      return jsonAnswer(200, root === "api" ? this.discovery.coreVersions() : this.discovery.groups());
    }
    const [group = "", version] = root === "api" ? ["", ...rest] : rest;
    const isList = root === "api" ? rest.length === 1 : rest.length <= 2;
    if (!isList || !this.discovery.has(group, version)) return undefined;
    return jsonAnswer(
      200,
      version === undefined ? this.discovery.group(group) : this.discovery.resources(group, version),
    );
  }

  private openApi([version, ...rest]: readonly string[], accept: string | undefined): RouteAnswer {
    const { kinds } = this.deps;
    if (version === "v2" && rest.length === 0) return openApiV2(accept);
    if (version !== "v3") return textAnswer(404, "404 page not found\n");
    if (rest.length === 0) return jsonAnswer(200, openApiIndex(kinds));
    const [root, ...below] = rest;
    const [group = "", word = ""] = root === "api" ? ["", ...below] : below;
    if (!this.discovery.has(group, word)) return textAnswer(404, "404 page not found\n");
    return jsonAnswer(200, openApiDocument(kinds, group, word));
  }

  /** A review is created and never stored. */
  private async review(resource: ReviewResource, { request, user }: ApiCall): Promise<RouteAnswer> {
    if (request.method !== "POST") throw methodNotAllowed();
    const format = negotiateOutput(request.headers.accept);
    const read = user.groups.includes(ADMINISTRATORS) ? readParsedBody : readSmallBody;
    const { value } = await read(request, this.deps);
    try {
      const { object } = decodeTree(resource.type, value);
      const answer = resource.review({ metadata: {}, ...object }, user);
      const apiVersion = `${resource.group}/${resource.version}`;
      return await textAnswerOf(201, JSON.stringify({ ...answer, kind: resource.kind, apiVersion }), format);
    } catch (error) {
      if (error instanceof TypeMismatch) throw badRequest(error.message);
      throw error;
    }
  }

  private failure(error: unknown, { signal, method, path }: RouteRequest): RouteAnswer {
    if (error instanceof StatusError) return statusAnswer(error.status);
    if (error instanceof TypeMismatch) return statusAnswer(badRequest(error.message).status);
    if (signal.aborted) throw error;
    if (error instanceof LogError) {
      this.deps.log.error("Failed to write objects of the local API", error, { method, path });
      return statusAnswer(internalError(error.message, error).status);
    }
    this.deps.log.error("Request to the local API failed", error, { method, path });
    return statusAnswer(internalError("see the agent's log", error).status);
  }
}

function warningHeader(warnings: readonly string[]): string {
  const values = [...new Set(warnings)].map((text) => `299 - ${JSON.stringify(text.replaceAll(/[^\x20-\x7e]/g, " "))}`);
  return values.join(", ").slice(0, MOST_WARNING_BYTES);
}

function serverVersion(): object {
  const { major = "", minor = "", gitVersion = "", buildDate = "", platform = "" } = versionInfo();
  return {
    major,
    minor,
    gitVersion,
    gitCommit: "",
    gitTreeState: "clean",
    buildDate,
    goVersion: "",
    compiler: "node",
    platform,
  };
}
