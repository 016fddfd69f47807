import { describe, test } from "node:test";
import { chooseSeed } from "../../../test/support/random.ts";
import { Simulation } from "../../../test/support/simulation.ts";

/** `SIMULATION_SEEDS=2000` runs more; `SIMULATION_SEED=17` replays one. */
const only = process.env["SIMULATION_SEED"];
const count = Number(process.env["SIMULATION_SEEDS"] ?? 50);
const first = chooseSeed("SIMULATION_FIRST_SEED", 1);
const seeds = only === undefined ? Array.from({ length: count }, (_, i) => first + i) : [Number(only)];

describe("a random life of the ring keeps its promises", () => {
  for (const seed of seeds) test(`seed ${seed}`, () => new Simulation(seed).run(30));
});
