import { exec } from "../adapters/host/exec.ts";
import { manifestFiles } from "../adapters/host/manifest-files.ts";
import { credentialDirectories, NodeCredentials } from "../adapters/host/node-credentials.ts";
import { pullRecordFiles } from "../adapters/host/pull-record-files.ts";
import type { ImagePort } from "../adapters/runtime/port.ts";
import { type agentOptions, isGateOn, type OptionStore } from "../config/index.ts";
import type { Abortable } from "../lib/abort.ts";
import type { Clock } from "../lib/clock.ts";
import { select } from "../lib/live.ts";
import type { Logger } from "../lib/log.ts";
import type { Metrics } from "../lib/metrics.ts";
import { parseDocuments } from "../lib/yaml.ts";
import type { ObjectSource } from "../model/object-source.ts";
import { accessMetrics, imageMetrics, providerMetrics } from "./image-metrics.ts";
import { type AccountSource, CredentialProvider } from "./providers/credential-provider.ts";
import { CredentialProviders } from "./providers/credential-providers.ts";
import { loadProviders } from "./providers/load-providers.ts";
import { PluginRunner } from "./providers/run-plugin.ts";
import { pullSecrets } from "./pull-secrets.ts";
import { ImagePuller } from "./puller.ts";
import { PullVerifier } from "./verification/pull-verifier.ts";
import { RecordStore } from "./verification/record-store.ts";

export interface ComposePullerDeps {
  readonly images: ImagePort;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly store: OptionStore<typeof agentOptions>;
  /** Where pull secrets and service accounts are read; undefined without an API server. */
  readonly objects: Pick<ObjectSource, "get"> | undefined;
  /** Tokens of service accounts, for credential providers. */
  readonly tokens: Pick<AccountSource, "token"> | undefined;
}

const LIVE = [
  ...(["serializeImagePulls", "maxParallelImagePulls", "registryPullQPS", "registryBurst"] as const),
  "imagePullProgressTimeout" as const,
];

/** The image puller as configured, with the credentials of pods, of the node and of credential providers. */
export function composePuller(deps: ComposePullerDeps, signal: AbortSignal): ImagePuller {
  const { images, clock, log, metrics, store, objects } = deps;
  return new ImagePuller(
    {
      images,
      clock,
      counted: imageMetrics(metrics),
      ...(objects && { credentials: pullSecrets({ objects, log }) }),
      nodeCredentials: new NodeCredentials(credentialDirectories(store.current.rootDir)),
      providers: composeProviders(deps, signal),
      access: composeAccess(deps),
      namesHandler: isGateOn("RuntimeClassInImageCriApi", store.current.featureGates),
    },
    select(store.live(...LIVE), (o) => ({
      parallel: o.serializeImagePulls ? 1 : (o.maxParallelImagePulls ?? 0),
      qps: o.registryPullQPS,
      burst: o.registryBurst,
      progressTimeoutMs: o.imagePullProgressTimeout ?? 0,
    })),
    signal,
  );
}

/** Who may use the images on the node; undefined if the feature gate is off. */
function composeAccess({ images, clock, log, metrics, store }: ComposePullerDeps): PullVerifier | undefined {
  const options = store.current;
  if (!isGateOn("KubeletEnsureSecretPulledImages", options.featureGates)) return undefined;
  const { counted, checked } = accessMetrics(metrics);
  return new PullVerifier(
    { store: new RecordStore({ files: pullRecordFiles, log, counted }, options.rootDir), images, clock, log, checked },
    { policy: options.imagePullCredentialsVerificationPolicy, allowlist: options.preloadedImagesVerificationAllowlist },
  );
}

/** Credential provider plugins; undefined if none are configured. */
function composeProviders(deps: ComposePullerDeps, signal: AbortSignal): CredentialProviders | undefined {
  const { clock, log, metrics, store, objects, tokens } = deps;
  const { imageCredentialProviderConfig: config, imageCredentialProviderBinDir: binDir, featureGates } = store.current;
  if (config === "" && binDir === "") return undefined;
  const { ran, loaded } = providerMetrics(metrics);
  const runner = new PluginRunner(
    { clock, ran, exec: (command, options) => exec(clock, command, options) },
    {
      binDir,
      signal,
    },
  );
  const accounts: AccountSource | undefined = objects &&
    tokens && {
      account: ({ metadata, spec }, options) =>
        objects.get(
          { kind: "ServiceAccount", namespace: metadata.namespace ?? "", name: spec.serviceAccountName ?? "" },
          options,
        ),
      token: (need, options) => tokens.token(need, options),
    };
  const load = async (): Promise<readonly CredentialProvider[]> => {
    const allowsTokens = isGateOn("KubeletServiceAccountTokenForCredentialProviders", featureGates);
    const files = { ...manifestFiles, parse };
    const { providers, hash } = await loadProviders(files, { config, binDir, allowsTokens }, { signal });
    loaded(hash);
    log.info("Loaded image credential providers", { providers: providers.map(({ name }) => name), hash });
    return providers.map(
      (one) => new CredentialProvider({ clock, accounts, run: (...request) => runner.run(...request) }, one),
    );
  };
  const parse = async (text: string, options: Abortable): Promise<unknown> =>
    (await parseDocuments(text, { clock, ...options })).documents[0]?.value;
  return new CredentialProviders({ log }, load());
}
