/**
 * Resolves after the event loop has taken what waits: sockets, timers, finished reads. Long work that is done in pieces
 * awaits it between them; a resolved promise alone lets nothing else run.
 */
export function eventLoopTurn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
