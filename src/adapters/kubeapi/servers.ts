/** The servers of one cluster, and which of them is in use. Everybody stays with one until it fails. */
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

  /** Leaves `failed` for the next one; does nothing when somebody else has left it already. */
  leave(failed: URL): void {
    if (failed === this.current) this.index = (this.index + 1) % this.all.length;
    this.failedAnswers = 0;
  }

  /** Hears each answer; true when the server answers but cannot work, and another one should be asked. */
  shouldLeaveAfter(httpStatus: number): boolean {
    this.failedAnswers = httpStatus >= 500 && httpStatus !== 504 ? this.failedAnswers + 1 : 0;
    return this.all.length > 1 && this.failedAnswers >= FAILED_ANSWERS;
  }
}

/** Errors of the server in a row after which another one is asked, if there is one. */
const FAILED_ANSWERS = 3;
