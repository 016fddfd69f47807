import type { Clock } from "../../lib/clock.ts";
import type { RuntimePort } from "../runtime/port.ts";
import type { ContainerEvent, EventSink, EventSource } from "./event-source.ts";

const SHORTEST_MS = 1000;
/** When nothing happens; a change or an action of our own brings it back to the shortest. */
const LONGEST_MS = 5000;
const GROWTH = 1.25;

type Phase = "created" | "running" | "stopped";
type Listing = ReadonlyMap<string, { phase: Phase; podUid?: string }>;

/** Events made from lists, for a runtime that has none of its own. */
export class RelistSource implements EventSource {
  readonly name = "relist";
  private changeExpected = false;

  constructor(
    private readonly deps: { runtime: Pick<RuntimePort, "listContainers" | "listSandboxes">; clock: Clock },
  ) {}

  async run(sink: EventSink, signal: AbortSignal): Promise<never> {
    let last = await this.list(signal);
    sink.established();
    for (let pauseMs = SHORTEST_MS; ; ) {
      await this.pause(pauseMs, signal);
      const next = await this.list(signal);
      const events = changes(last, next, this.deps.clock.now().wall);
      for (const event of events) sink.push(event);
      const lively = events.length > 0 || this.changeExpected;
      pauseMs = lively ? SHORTEST_MS : Math.min(LONGEST_MS, pauseMs * GROWTH);
      last = next;
    }
  }

  /** Something is about to change: the next list comes within the shortest pause. */
  expectChange(): void {
    this.changeExpected = true;
  }

  /** Sleeps in short pieces, so that an announced change ends it soon. */
  private async pause(ms: number, signal: AbortSignal): Promise<void> {
    const { clock } = this.deps;
    const due = clock.now().mono + ms;
    this.changeExpected = false;
    while (!this.changeExpected && clock.now().mono < due) {
      await clock.sleep(Math.min(SHORTEST_MS, due - clock.now().mono), { signal });
    }
  }

  private async list(signal: AbortSignal): Promise<Listing> {
    const { runtime } = this.deps;
    const [sandboxes, containers] = await Promise.all([
      runtime.listSandboxes({}, { signal }),
      runtime.listContainers({}, { signal }),
    ]);
    const listing = new Map<string, { phase: Phase; podUid?: string }>();
    const pods = new Map(sandboxes.map(({ id, metadata }) => [id, metadata.uid]));
    for (const { id, state, metadata } of sandboxes) {
      listing.set(id, { phase: state === "ready" ? "running" : "stopped", podUid: metadata.uid });
    }
    for (const { id, state, sandboxId } of containers) {
      const podUid = pods.get(sandboxId);
      const phase = state === "created" || state === "running" ? state : "stopped";
      listing.set(id, { phase, ...(podUid !== undefined && { podUid }) });
    }
    return listing;
  }
}

/** What must have happened between two lists, in the order in which it happens to one container. */
export function changes(before: Listing, after: Listing, at: number): ContainerEvent[] {
  const events: ContainerEvent[] = [];
  for (const [id, { phase, podUid }] of after) {
    const known = before.get(id)?.phase;
    if (known === phase) continue;
    const types: ContainerEvent["type"][] = [];
    if (known === undefined) types.push("created");
    if (phase === "running") types.push("started");
    if (phase === "stopped") types.push("stopped");
    for (const type of types) events.push({ kind: "container", type, id, ...(podUid && { podUid }), at });
  }
  for (const [id, { podUid }] of before) {
    if (!after.has(id)) events.push({ kind: "container", type: "deleted", id, ...(podUid && { podUid }), at });
  }
  return events;
}
