import { type KubeApi, stubRequest } from "../adapters/kubeapi/index.ts";
import { type agentOptions, isGateOn, type OptionStore } from "../config/index.ts";
import type { Clock } from "../lib/clock.ts";
import type { Metrics } from "../lib/metrics.ts";
import { podIdentity } from "../model/pod-facts.ts";
import type { PodIdentity } from "../model/step.ts";
import { ApiPodCertificates, type PodCertificateDeps } from "./api-pod-certificates.ts";

export interface PodCertificateParts extends Pick<PodCertificateDeps, "node"> {
  readonly api: KubeApi;
  readonly clock: Clock;
  readonly metrics: Metrics;
  readonly store: OptionStore<typeof agentOptions>;
  readonly journal: {
    of(pod: PodIdentity): { event(type: "Normal" | "Warning", reason: string, message: string): void };
  };
}

/** What volumes get certificates of pods from. */
export interface CertificateSources {
  readonly podCertificates: ApiPodCertificates;
}

/** Certificates of pods, with their metric. */
export function composePodCertificates(parts: PodCertificateParts, signal: AbortSignal): CertificateSources {
  const { api, clock, metrics, store, journal, node } = parts;
  const podCertificates = new ApiPodCertificates(
    {
      api,
      clock,
      node,
      random: Math.random,
      makeKey: stubRequest,
      isEnabled: () => isGateOn("PodCertificateRequest", store.current.featureGates),
      event: (pod, reason, message) => journal.of(podIdentity(pod)).event("Warning", reason, message),
    },
    signal,
  );
  metrics.gaugeFrom("kubelet_podcertificate_states", "Number of certificates of pods, by signer and state.", {
    labels: ["signer_name", "state"],
    values: () => podCertificates.states(),
  });
  return { podCertificates };
}
