export { composePuller } from "./compose.ts";
export {
  type CredentialSource,
  ImagePuller,
  type PullerOptions,
  type PullJournal,
  type PullRequest,
} from "./puller.ts";
