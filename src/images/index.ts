export { imageMetrics } from "./image-metrics.ts";
export { pullSecrets } from "./pull-secrets.ts";
export {
  type CredentialSource,
  ImagePuller,
  type PullerOptions,
  type PullJournal,
  type PullRequest,
} from "./puller.ts";
