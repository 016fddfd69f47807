/** Starts that this process has asked for and that are not answered yet: the answer tells when CRI knows of them. */
export class OwnStarts {
  private readonly underWay = new Map<string, Promise<void>>();

  /** Follows a start to its end, and gives its outcome on. */
  async follow(id: string, start: Promise<unknown>): Promise<void> {
    const settled = start.then(
      () => undefined,
      () => undefined,
    );
    this.underWay.set(id, settled);
    try {
      await start;
    } finally {
      this.underWay.delete(id);
    }
  }

  /** Resolves when the start under way has ended, well or not; undefined when there is none. */
  of(id: string): Promise<void> | undefined {
    return this.underWay.get(id);
  }
}
