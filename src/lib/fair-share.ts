/** A client has at most this part of the places that are free: so many greedy clients leave a place to a newcomer. */
const PART = 8;

/**
 * Divides places among clients. What a client may have shrinks with what is left, so that no client can take the places
 * of all: alone it has a ninth of them, and with others who take all they can get each has about as much as the next.
 */
export class FairShare {
  private readonly taken = new Map<string, number>();
  private total = 0;

  constructor(private readonly places: number) {}

  /** Takes a place; undefined if the client has its share. The caller returns it once, by calling the result. */
  take(client: string): (() => void) | undefined {
    const own = this.taken.get(client) ?? 0;
    if (own >= (this.places - this.total) / PART) return undefined;
    this.taken.set(client, own + 1);
    this.total++;
    return () => {
      const left = (this.taken.get(client) ?? 0) - 1;
      if (left > 0) this.taken.set(client, left);
      else this.taken.delete(client);
      this.total--;
    };
  }
}
