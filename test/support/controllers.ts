import { type KubeApi, NODES, PODS } from "../../src/adapters/kubeapi/index.ts";
import type { ApiServer } from "../../src/apiserver/index.ts";
import type { ControllerDeps, ControllerFactory } from "../../src/controllers/controller.ts";
import { EventSink } from "../../src/controllers/event-sink.ts";
import { Informers } from "../../src/controllers/informers.ts";
import { manyListeners } from "../../src/lib/abort.ts";
import { FakeClock } from "../../src/lib/clock.ts";
import { silent } from "../../src/lib/log.ts";
import { testApiServer } from "./local-api.ts";

/** The real local API with some of its controllers, on a clock that stands still. */
export class ControllerBench {
  readonly clock = new FakeClock();
  readonly signal = { signal: manyListeners().signal };
  private readonly stop = manyListeners();
  private readonly running: Promise<void>[] = [];
  /** Bugs of controllers, which the agent only logs; `close` rejects with the first that is left. */
  readonly bugs: unknown[] = [];

  private constructor(
    readonly server: ApiServer,
    /** The user's client. */
    readonly api: KubeApi,
  ) {}

  static async start(...factories: readonly ControllerFactory[]): Promise<ControllerBench> {
    const clock = new FakeClock();
    const server = await testApiServer(clock);
    const bench = new ControllerBench(server, server.api("user"));
    Object.assign(bench, { clock });
    const api = server.api("controller");
    const { signal } = bench.stop;
    const log = { ...silent, error: (_message: string, error: unknown) => void bench.bugs.push(error) };
    const shared = { api, clock, log, random: () => 0.5 };
    const informers = new Informers(shared, signal);
    const events = new EventSink(shared);
    const deps: ControllerDeps = { ...shared, informers, events };
    for (const make of factories) bench.running.push(make(deps).run(signal));
    bench.running.push(events.run(signal));
    await bench.settle();
    return bench;
  }

  /** Lets everything happen that is due, without moving the clock. */
  async settle(): Promise<void> {
    for (let turn = 0; turn < 5; turn++) await this.clock.advance(0);
  }

  /** Moves the clock, and lets everything happen that is due then. */
  async advance(ms: number): Promise<void> {
    await this.clock.advance(ms);
    await this.settle();
  }

  /** Moves the clock, and tells how many writes there were meanwhile, of all kinds. */
  async writesWithin(ms: number): Promise<number> {
    const version = async () => Number((await this.api.list(PODS, {}, this.signal)).resourceVersion);
    const before = await version();
    await this.advance(ms);
    return (await version()) - before;
  }

  /** A node that takes pods. */
  async addNode(
    name = "node",
    allocatable: Readonly<Record<string, string>> = { cpu: "4", memory: "8Gi", pods: "110" },
  ) {
    const conditions = [{ type: "Ready", status: "True" }];
    const object = { metadata: { name }, spec: {}, status: { capacity: allocatable, allocatable, conditions } };
    await this.api.create(NODES, { object }, this.signal);
    await this.settle();
  }

  async close(): Promise<void> {
    this.stop.abort();
    await Promise.all(this.running);
    await this.server.close();
    if (this.bugs.length > 0) throw this.bugs[0];
  }
}
