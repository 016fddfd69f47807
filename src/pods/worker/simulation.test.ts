import { describe, test } from "node:test";
import { Simulation } from "../../../test/support/simulation.ts";

/** `SIMULATION_SEEDS=2000` runs more; `SIMULATION_SEED=17` replays one. */
const only = process.env["SIMULATION_SEED"];
const count = Number(process.env["SIMULATION_SEEDS"] ?? 100);
const seeds = only === undefined ? Array.from({ length: count }, (_, i) => i + 1) : [Number(only)];

describe("a random life of the ring keeps its promises", () => {
  for (const seed of seeds) test(`seed ${seed}`, () => new Simulation(seed).run(30));
});
