import type { Clock } from "../../lib/clock.ts";
import type { Metrics } from "../../lib/metrics.ts";
import type { CertificateFacts } from "./rotation.ts";

/** Declares time to expiration and renewal failures of a rotated certificate. */
export function declareCertificateMetrics(
  metrics: Metrics,
  clock: Clock,
  { kind, facts }: { readonly kind: "client" | "server"; facts(): CertificateFacts },
): void {
  const ttl = (): number => {
    const { expiresAt } = facts();
    return expiresAt === undefined ? Number.POSITIVE_INFINITY : Math.round((expiresAt - clock.now().wall) / 1000);
  };
  metrics.gaugeFrom(
    `kubelet_certificate_manager_${kind}_ttl_seconds`,
    `Time until the ${kind} certificate expires; negative once it has.`,
    {
      values: () => [[[], ttl()]],
    },
  );
  // The two names differ in Kubernetes too.
  const errors =
    kind === "client"
      ? "kubelet_certificate_manager_client_expiration_renew_errors"
      : "kubelet_server_expiration_renew_errors";
  metrics.counterFrom(errors, `Number of failed renewals of the ${kind} certificate.`, {
    values: () => [[[], facts().failures]],
  });
}

/** Seconds, as in Kubernetes: from a minute to four years. */
const LIFE_BUCKETS = [60, 3600, 14_400, 86_400, 604_800, 2_592_000, 7_776_000, 15_552_000, 31_104_000, 124_416_000];

/** Declares the lifetime of serving certificates; returns the callback for each certificate taken into use. */
export function rotationMetrics(metrics: Metrics, clock: Clock): (pair: { readonly notBefore: number }) => void {
  const lived = metrics.histogram(
    "kubelet_certificate_manager_server_rotation_seconds",
    "Time that a serving certificate was in use before it was rotated.",
    { buckets: LIFE_BUCKETS },
  );
  let previous: { readonly notBefore: number } | undefined;
  return (pair) => {
    if (previous !== undefined) lived.observe(Math.max(0, clock.now().wall - previous.notBefore) / 1000);
    previous = pair;
  };
}
