import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { agentOptions } from "./agent-options.ts";
import { bool, duration, int, text } from "./kinds.ts";
import { headers, list } from "./kinds-lists.ts";
import { option } from "./option.ts";
import { parseOptions } from "./parse.ts";

const common = { topic: "General", help: "A thing." } as const;
const table = {
  name: option(text(), { ...common, flag: "the-name", short: "n", default: "unset" }),
  deep: option(bool, { ...common, flag: "deep", short: "d", default: true }),
  force: option(bool, { ...common, flag: "force", short: "f", default: false }),
  level: option(int, { ...common, flag: "v", short: "v", default: 0 }),
  every: option(duration, { ...common, flag: "every", default: 1000 }),
  servers: option(list(), { ...common, flag: "servers", default: ["old"] }),
  extra: option(headers, { ...common, flag: "extra", default: {} }),
};
const defaults = { name: "unset", deep: true, force: false, level: 0, every: 1000, servers: ["old"], extra: {} };

const accepted = [
  { argv: "", want: {} },
  { argv: "--the-name=x", want: { name: "x" } },
  { argv: "--the-name x", want: { name: "x" } },
  { argv: "--the_name x", want: { name: "x" } },
  { argv: "--the-name=", want: { name: "" } },
  { argv: "--the-name=a=b", want: { name: "a=b" } },
  { argv: "--the-name --deep", want: { name: "--deep" } },
  { argv: "--the-name a --the-name b", want: { name: "b" } },
  { argv: "-n x", want: { name: "x" } },
  { argv: "-nx", want: { name: "x" } },
  { argv: "-n=x", want: { name: "x" } },
  { argv: "--deep=false", want: { deep: false } },
  { argv: "--deep=F --force=1", want: { deep: false, force: true } },
  { argv: "-fd=false", want: { force: true, deep: false } },
  { argv: "-fv4", want: { force: true, level: 4 } },
  { argv: "-v 4", want: { level: 4 } },
  { argv: "-v=4", want: { level: 4 } },
  { argv: "--v=0x10", want: { level: 16 } },
  { argv: "--v=010", want: { level: 8 } },
  { argv: "--v=-2", want: { level: -2 } },
  { argv: "--every 1.5h", want: { every: 5_400_000 } },
  { argv: "--every 2h45m0.5s", want: { every: 9_900_500 } },
  { argv: "--every 0", want: { every: 0 } },
  { argv: "--every 100us", want: { every: 0.1 } },
  { argv: "--servers a,b", want: { servers: ["a", "b"] } },
  { argv: "--servers a --servers b,c", want: { servers: ["a", "b", "c"] } },
  { argv: "--extra a:1,b:2 --extra a:3:4", want: { extra: { a: ["1", "3:4"], b: ["2"] } } },
  { argv: "--force x -- --deep=false -n", want: { force: true }, words: ["x", "--deep=false", "-n"] },
  { argv: "--force false", want: { force: true }, words: ["false"] },
  { argv: "-", want: {}, words: ["-"] },
];
for (const c of accepted) {
  test(`"${c.argv}" is read as pflag reads it`, () => {
    const parsed = parseOptions(c.argv.split(" ").filter(Boolean), table);
    assert.deepEqual(parsed.problems, []);
    assert.deepEqual(parsed.values, { ...defaults, ...c.want });
    assert.deepEqual(parsed.words, c.words ?? []);
    assert.deepEqual([...parsed.given].sort(), Object.keys(c.want).sort());
  });
}

const refused = [
  { argv: "--nam x", says: "unknown flag --nam; did you mean --the-name?" },
  { argv: "--banana", says: "unknown flag --banana" },
  { argv: "-z", says: "unknown flag -z" },
  { argv: "-fz", says: "unknown flag -z in -fz" },
  { argv: "--the-name", says: "flag --the-name needs a value (TEXT)" },
  { argv: "--deep=perhaps", says: 'invalid value "perhaps" for --deep: must be true or false' },
  { argv: "--deep=", says: 'invalid value "" for --deep: must be true or false' },
  { argv: "-v x", says: 'invalid value "x" for -v: must be a whole number' },
  { argv: "--v=1.5", says: 'invalid value "1.5" for --v: must be a whole number' },
  { argv: "--v=4294967296", says: 'invalid value "4294967296" for --v: must fit in 32 bits' },
  { argv: "--every 1d", says: 'invalid value "1d" for --every: must be a duration such as 20s, 1m30s or 1.5h' },
  { argv: "--every .s", says: 'invalid value ".s" for --every: must be a duration such as 20s, 1m30s or 1.5h' },
];
for (const c of refused) {
  test(`"${c.argv}" is refused`, () => {
    const { problems } = parseOptions(c.argv.split(" "), table);
    assert.deepEqual(problems, [c.says]);
  });
}

test("all problems are told at once", () => {
  const { problems } = parseOptions(["--v=x", "--nope", "--every=1"], table);
  assert.equal(problems.length, 3);
});

test("no command line makes the parser throw, and what it yields has every field", () => {
  const word = fc.oneof(fc.string(), fc.constantFrom("--v", "-v", "--", "--runonce=x", "-vh", "--cluster-dns"));
  fc.assert(
    fc.property(fc.array(word), (argv) => {
      const { values } = parseOptions(argv, agentOptions);
      assert.deepEqual(Object.keys(values), Object.keys(agentOptions));
    }),
  );
});
