export { composePuller } from "./compose.ts";
export type { CredentialSource, PullJournal, PullRequest } from "./pull-request.ts";
export { ImagePuller, type PullerOptions } from "./puller.ts";
