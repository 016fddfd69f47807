import type { KubeApi } from "../adapters/kubeapi/index.ts";
import type { RouteAnswer, RouteRequest } from "../adapters/net/http-route.ts";
import type { Abortable } from "../lib/abort.ts";
import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/log.ts";
import type { Loop } from "../lib/loop.ts";
import type { NodeUsageReport } from "../model/node-usage.ts";
import { ADMINISTRATORS } from "./auth/access.ts";
import { AccountTokens } from "./auth/account-tokens.ts";
import { reviewResources } from "./auth/reviews.ts";
import { bootstrapObjects, bootstrapServices, type OwnServices } from "./bootstrap.ts";
import { LocalApi, type LocalApiDeps, type LocalApiOptions } from "./client/local-api.ts";
import { Expiry } from "./expiry.ts";
import { collectionOf, type RequestUser } from "./kinds/kind.ts";
import { KindTable } from "./kinds/kind-table.ts";
import { AddressRange } from "./kinds/network/address-range.ts";
import { servedKinds } from "./kinds/served-kinds.ts";
import { metricsGroup } from "./metrics/metrics-group.ts";
import type { OperationDeps } from "./operations/context.ts";
import { ApiHandler } from "./rest/api-handler.ts";
import { EventLines } from "./rest/event-lines.ts";
import { type Subresource, SubresourceTable } from "./rest/subresource.ts";
import { ApiStore, type OpenLog } from "./store/index.ts";
import { bindingSubresource } from "./subresources/binding.ts";
import { evictionSubresource } from "./subresources/eviction.ts";
import { type NodeEndpoints, podConnections } from "./subresources/pod-connect.ts";
import { scaleSubresources } from "./subresources/scale.ts";
import { tokenSubresource } from "./subresources/token.ts";

/** What a server is built from. */
export interface ApiServerDeps {
  readonly clock: Clock;
  readonly log: Logger;
  /** 0 to below 1. */
  readonly random: () => number;
  readonly openLog: OpenLog;
}

export interface ApiServerOptions {
  /** Signs tokens of service accounts: ECDSA P-256, PEM. */
  readonly signingKey: string;
  /** The certificate that pods trust the API by, PEM; empty without one. */
  readonly authority: string;
  /** Addresses of services. */
  readonly serviceSubnet: string;
  readonly nodePorts: readonly [first: number, last: number];
  /** The services `kubernetes` and `kube-dns`, where the node answers them. */
  readonly ownServices?: OwnServices | undefined;
  /** Where the pods of a source of manifests (`file`, `http`) come from, in words. */
  describeSource?(source: string): string;
}

/** The agent that runs the pods, once it is there: they can be looked into, and their usage is measured. */
export interface ApiNode extends NodeEndpoints {
  readonly nodeName: string;
  usage(options: Abortable): Promise<NodeUsageReport>;
}

/** The user of everything that runs inside the agent. */
function innerUser(name: string): RequestUser {
  return { name, groups: [ADMINISTRATORS, "system:authenticated"] };
}

/** The local API: objects, rules and watches. Listeners are made around `handle`. */
export class ApiServer {
  private handler: ApiHandler;
  private readonly tokens: AccountTokens;

  private constructor(
    private readonly deps: OperationDeps & { readonly log: Logger },
    options: ApiServerOptions,
  ) {
    const { store } = deps;
    // Only stored objects are read, and they are of the collection's kind.
    const get = <T>(
      resource: { readonly group: string; readonly plural: string },
      at: { namespace?: string; name: string },
    ) => store.get(collectionOf(resource), { namespace: at.namespace ?? "", name: at.name })?.shared() as T | undefined;
    this.tokens = new AccountTokens({ clock: deps.clock, read: { get }, signingKey: options.signingKey });
    this.handler = this.makeHandler(undefined);
  }

  /** Loads the objects and creates what every cluster has. Rejects with `LogError`. */
  static async open(deps: ApiServerDeps, options: ApiServerOptions, abortable: Abortable): Promise<ApiServer> {
    const { clock, log, random } = deps;
    const services = { addresses: new AddressRange(options.serviceSubnet), nodePorts: options.nodePorts, random };
    const describeSource = (source: string): string => options.describeSource?.(source) ?? "a manifest";
    const kinds = new KindTable(servedKinds({ authority: options.authority, services, describeSource }));
    const store = await ApiStore.open(deps.openLog, (revision) => kinds.collectionsAt(revision));
    const server = new ApiServer({ store, kinds, clock, random, log }, options);
    await bootstrapObjects(server.api("kubelet-up"), abortable);
    if (options.ownServices) await bootstrapServices(server.api("kubelet-up"), options.ownServices, abortable);
    return server;
  }

  /** A client for callers inside the process; `manager` is the name under which they own fields. */
  api(manager: string, user: RequestUser = innerUser(`system:${manager}`)): KubeApi {
    const deps: LocalApiDeps = { ...this.deps, server: this, tokens: this.tokens };
    const options: LocalApiOptions = { user, manager };
    return new LocalApi(deps, options);
  }

  /** Answers one request of a user. */
  handle(request: RouteRequest, user: RequestUser): Promise<RouteAnswer> {
    return this.handler.handle(request, user);
  }

  /** The user of a bearer token; undefined if it is not valid. */
  reviewToken(token: string): RequestUser | undefined {
    return this.tokens.review(token, []);
  }

  /** Connects the agent that runs the pods. */
  attach(node: ApiNode): void {
    this.handler = this.makeHandler(node);
  }

  get loops(): readonly Loop[] {
    const expiry = new Expiry(this.deps);
    return [{ name: "expiry of events", run: (signal) => expiry.run({ signal }) }];
  }

  /** Ends all watches and closes the file. */
  close(): Promise<void> {
    return this.deps.store.close();
  }

  private makeHandler(node: ApiNode | undefined): ApiHandler {
    const { deps, tokens } = this;
    const all: readonly Subresource[] = [
      ...scaleSubresources(deps),
      tokenSubresource(deps, tokens),
      bindingSubresource(deps),
      evictionSubresource(deps),
      ...(node === undefined ? [] : podConnections(deps, node)),
    ];
    const table = new SubresourceTable(all);
    const measured =
      node === undefined ? [] : [metricsGroup({ ...deps, ...node, usage: (options) => node.usage(options) })];
    const lines = new EventLines();
    return new ApiHandler({ ...deps, subresources: table, lines, reviews: reviewResources(tokens), measured });
  }
}
