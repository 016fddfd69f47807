/** An amount, such as bytes of memory, of which parts are taken and returned. */
export class Budget {
  private left: number;

  constructor(amount: number) {
    this.left = amount;
  }

  /** Takes a part; undefined if that much is not left. The result returns it; it may be called again. */
  take(amount: number): (() => void) | undefined {
    if (amount > this.left) return undefined;
    this.left -= amount;
    let isTaken = true;
    return () => {
      if (isTaken) this.left += amount;
      isTaken = false;
    };
  }
}
