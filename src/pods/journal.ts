import type { Abortable } from "../lib/abort.ts";
import { clip } from "../lib/bounded-text.ts";
import type { Clock } from "../lib/clock.ts";
import { messageOf } from "../lib/errors.ts";
import { Listeners } from "../lib/listeners.ts";
import type { Span, Tracer } from "../lib/tracer.ts";
import type { Pod } from "../model/generated/types.ts";
import { podIdentity } from "../model/pod-facts.ts";
import type { NextTry, PodError, PodEvent, PodIdentity, PodStep, StepName, StepProgress } from "../model/step.ts";

/** Steps kept a pod: a crash loop of hours still shows its first and its last ones' neighbours. */
const STEPS_KEPT = 64;
const ERRORS_KEPT = 16;
/** What one text may take, in bytes: pods, registries and runtimes choose them. With the counts, this bounds a journal. */
const DETAIL_BYTES = 512;
const ERROR_BYTES = 1024;
const EVENT_BYTES = 2048;
/** Events kept for all pods together. */
const EVENTS_KEPT = 1000;

/** A step that goes on. Each of its ends may be called once; later calls do nothing. */
export interface OpenStep {
  /** Replaces the detail, and the progress: without one, there is none any more. */
  detail(text: string, progress?: StepProgress): void;
  done(detail?: string): void;
  fail(error: unknown): void;
  abort(detail?: string): void;
}

/** A step of a pod that has just ended, with what it failed by. */
export interface EndedStep extends PodStep {
  readonly pod: PodIdentity;
  readonly error?: unknown;
}

interface MutableStep {
  step: StepName;
  container?: string;
  since: number;
  until?: number;
  outcome?: "ok" | "failed" | "aborted";
  detail: string;
  progress?: StepProgress;
}

/** Begins the span of a step in that of the worker that takes it; undefined outside of one. */
type StepTracer = (step: { readonly step: StepName; readonly container?: string }) => Pick<Span, "end"> | undefined;

/** What one pod's worker did, does, and will do next. The only bookkeeping that explain, events and the views read. */
export class PodJournal {
  private readonly steps: MutableStep[] = [];
  private readonly errors = new Map<string, PodError>();
  private nextTry: NextTry | undefined;

  constructor(
    readonly pod: PodIdentity,
    private readonly owner: {
      now(): number;
      changed(uid: string): void;
      event(event: NewEvent): void;
      ended(step: EndedStep): void;
      span?: StepTracer | undefined;
    },
  ) {}

  /** Opens a step; it stays "going on" until one of its ends is called. */
  begin(step: StepName, options: { container?: string; detail?: string } = {}): OpenStep {
    const entry: MutableStep = { step, since: this.owner.now(), detail: clip(options.detail ?? "", DETAIL_BYTES) };
    if (options.container !== undefined) entry.container = options.container;
    this.steps.push(entry);
    if (this.steps.length > STEPS_KEPT) this.steps.shift();
    this.nextTry = undefined;
    this.owner.changed(this.pod.uid);
    const span = this.owner.span?.(entry);
    const end = (outcome: "ok" | "failed" | "aborted", detail: string | undefined, error?: unknown): void => {
      if (entry.until !== undefined) return;
      entry.until = this.owner.now();
      entry.outcome = outcome;
      delete entry.progress;
      if (detail !== undefined) entry.detail = clip(detail, DETAIL_BYTES);
      span?.end({ attributes: { outcome }, error: outcome === "failed" ? entry.detail : undefined });
      this.owner.ended({ ...entry, pod: this.pod, error });
      this.owner.changed(this.pod.uid);
    };
    return {
      detail: (text, progress) => {
        const clipped = clip(text, DETAIL_BYTES);
        const isSame = entry.detail === clipped && entry.progress === undefined && progress === undefined;
        if (entry.until !== undefined || isSame) return;
        entry.detail = clipped;
        if (progress === undefined) delete entry.progress;
        else entry.progress = progress;
        this.owner.changed(this.pod.uid);
      },
      done: (detail) => end("ok", detail),
      fail: (error) => {
        if (entry.until !== undefined) return;
        end("failed", messageOf(error), error);
        this.error(step, error, options.container);
      },
      abort: (detail) => end("aborted", detail),
    };
  }

  /** A step that took no time. */
  note(step: StepName, detail: string, container?: string): void {
    const next = this.nextTry;
    this.begin(step, { detail, ...(container === undefined ? {} : { container }) }).done(detail);
    // Nothing was begun, so what the worker waits for stays as it was.
    this.nextTry = next;
  }

  /** An event about the pod, about one of its containers, or about a claim that it uses. */
  event(
    type: "Normal" | "Warning",
    reason: string,
    what: string | (Pick<PodEvent, "message"> & Partial<Pick<PodEvent, "container" | "claim" | "annotations">>),
  ): void {
    const about = typeof what === "string" ? { message: what } : what;
    this.owner.event({ type, reason, pod: this.pod, ...about });
  }

  /** When the worker will try again by itself; undefined: only a wake-up will make it. */
  setNext(next: NextTry | undefined): void {
    const why = next && clip(next.why, DETAIL_BYTES);
    if (next?.at === this.nextTry?.at && why === this.nextTry?.why) return;
    this.nextTry = next && { ...next, why: why ?? "" };
    this.owner.changed(this.pod.uid);
  }

  get next(): NextTry | undefined {
    return this.nextTry;
  }

  /** Oldest first; copies, so that a reader never sees a step change under it. */
  get history(): readonly PodStep[] {
    return this.steps.map((step) => ({ ...step }));
  }

  /** The newest step that goes on, else the newest of all. */
  get current(): PodStep | undefined {
    return this.steps.findLast((step) => step.until === undefined) ?? this.steps.at(-1);
  }

  get distinctErrors(): readonly PodError[] {
    return [...this.errors.values()];
  }

  private error(step: StepName, error: unknown, container: string | undefined): void {
    const message = clip(messageOf(error), ERROR_BYTES);
    const key = `${step}\0${container ?? ""}\0${message}`;
    const now = this.owner.now();
    const known = this.errors.get(key);
    this.errors.delete(key);
    this.errors.set(key, {
      step,
      ...(container === undefined ? {} : { container }),
      message,
      count: (known?.count ?? 0) + 1,
      first: known?.first ?? now,
      last: now,
    });
    const oldest = this.errors.keys().next();
    if (this.errors.size > ERRORS_KEPT && !oldest.done) this.errors.delete(oldest.value);
  }
}

type NewEvent = Pick<PodEvent, "type" | "reason" | "message" | "pod" | "container" | "claim" | "annotations">;

/** The journals of all pods, and the bounded list of events. */
export class Journal {
  private readonly pods = new Map<string, PodJournal>();
  /** Keyed by what makes two events the same; the order is that of the last change. */
  private readonly recorded = new Map<string, PodEvent>();
  private readonly listeners = new Listeners<string>();
  private readonly eventListeners = new Listeners<PodEvent>();
  private readonly stepListeners = new Listeners<EndedStep>();
  private sequence = 0;

  constructor(private readonly deps: { readonly clock: Clock; readonly tracer?: Tracer | undefined }) {}

  /** What the workers trace with; undefined where nothing is traced. */
  get tracer(): Tracer | undefined {
    return this.deps.tracer;
  }

  of(pod: PodIdentity): PodJournal {
    const known = this.pods.get(pod.uid);
    if (known !== undefined) return known;
    const { tracer } = this.deps;
    const made = new PodJournal(pod, {
      span: tracer && stepTracer(tracer),
      now: () => this.deps.clock.now().wall,
      changed: (uid) => this.changed(uid),
      event: (event) => this.record(event),
      ended: (step) => this.stepListeners.call(step),
    });
    this.pods.set(pod.uid, made);
    return made;
  }

  /** Notes what a pod waits for until the result is called. */
  waiting(pod: Pod, what: string): () => void {
    const step = this.of(podIdentity(pod)).begin("waiting", { detail: what });
    return () => step.done(what);
  }

  find(uid: string): PodJournal | undefined {
    return this.pods.get(uid);
  }

  /** Called once a pod is gone for good; its events stay until they are pushed out. */
  evict(uid: string): void {
    this.pods.delete(uid);
    this.changed(uid);
  }

  /** Events with a sequence above `since`, oldest change first. */
  events(since: number): readonly PodEvent[] {
    return [...this.recorded.values()].filter((event) => event.sequence > since);
  }

  /** An event about something that is no pod (yet), such as a manifest file. */
  event(event: { type: "Normal" | "Warning"; reason: string; message: string; subject: string }): void {
    const { subject, ...rest } = event;
    this.record({ ...rest, pod: { uid: "", name: subject, namespace: "" } });
  }

  /** Calls `fn` with the UID after each change of a journal or a new event. */
  onChange(fn: (uid: string) => void, options: Abortable): void {
    this.listeners.add(fn, options);
  }

  /** Calls `fn` with each event as it happens. */
  onEvent(fn: (event: PodEvent) => void, options: Abortable): void {
    this.eventListeners.add(fn, options);
  }

  /** Calls `fn` with each step that ends; for those who count. */
  onStep(fn: (step: EndedStep) => void, options: Abortable): void {
    this.stepListeners.add(fn, options);
  }

  private record(given: NewEvent): void {
    const event = { ...given, message: clip(given.message, EVENT_BYTES) };
    const part = event.claim?.uid ?? event.container ?? "";
    const key = [event.pod.uid, part, event.type, event.reason, event.message].join("\0");
    const known = this.recorded.get(key);
    const now = this.deps.clock.now().wall;
    this.recorded.delete(key);
    const recorded = {
      ...event,
      sequence: ++this.sequence,
      count: (known?.count ?? 0) + 1,
      first: known?.first ?? now,
      last: now,
    };
    this.recorded.set(key, recorded);
    this.eventListeners.call(recorded);
    const oldest = this.recorded.keys().next();
    if (this.recorded.size > EVENTS_KEPT && !oldest.done) this.recorded.delete(oldest.value);
    this.changed(event.pod.uid);
  }

  private changed(uid: string): void {
    this.listeners.call(uid);
  }
}

/** A step is a span in that of the worker's pass; what the step calls belongs to it. Steps are no part of each other. */
function stepTracer(tracer: Tracer): StepTracer {
  return ({ step, container }) => {
    const { active } = tracer;
    const parent = active?.options.isStep === true ? active.parent : active;
    if (parent === undefined) return undefined;
    const attributes = { ...(container !== undefined && { "k8s.container.name": container }) };
    const span = tracer.begin(step, { parent, attributes, isStep: true });
    tracer.enter(span);
    return span;
  };
}
