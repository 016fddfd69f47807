export { imageMetrics } from "./image-metrics.ts";
export {
  type CredentialSource,
  ImagePuller,
  type PullerOptions,
  type PullJournal,
  type PullRequest,
} from "./puller.ts";
