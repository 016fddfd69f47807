/** The servers of one cluster, and the one in use until it fails. */
export class Servers {
  private index = 0;
  private failedAnswers = 0;
  readonly all: readonly URL[];

  constructor(urls: readonly string[]) {
    this.all = urls.map((url) => new URL(url));
    if (this.all.length === 0) throw new Error("API server must not be empty");
  }

  get current(): URL {
    const url = this.all[this.index % this.all.length];
    if (url === undefined) throw new Error("API server must not be empty");
    return url;
  }

  /** Fails over from `failed` to the next one; does nothing if that happened already. */
  leave(failed: URL): void {
    if (failed === this.current) this.index = (this.index + 1) % this.all.length;
    this.failedAnswers = 0;
  }

  /** Counts each response; true if the server keeps failing and another one should be used. */
  shouldLeaveAfter(httpStatus: number): boolean {
    this.failedAnswers = httpStatus >= 500 && httpStatus !== 504 ? this.failedAnswers + 1 : 0;
    return this.all.length > 1 && this.failedAnswers >= FAILED_ANSWERS;
  }
}

/** Number of consecutive server errors before a failover. */
const FAILED_ANSWERS = 3;
