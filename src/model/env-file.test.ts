import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { envFileReferences, envFileValue } from "./env-file.ts";

const values: [name: string, text: string, want: string | undefined][] = [
  ["a plain line", "A='1'\n", "1"],
  ["the last line without an end", "B='2'\nA='1'", "1"],
  ["the first line with the key counts", "A='1'\nA='2'\n", "1"],
  ["blanks before the name", " \t A='1'\n", "1"],
  ["blank lines and comments are skipped", "\n  \n# A='0'\n  # more\nA='1'\n", "1"],
  ["a comment after the value", "A='1' # one\n", "1"],
  ["a comment right after the value", "A='1'#one\n", "1"],
  ["blanks after the value", "A='1' \t\n", "1"],
  ["lines that end as on Windows", "# x\r\nA='1'\r\nB='2'\r\n", "1"],
  ["the value as it stands", "A='$(B) \\n \"x\" # = \t'\n", '$(B) \\n "x" # = \t'],
  ["a value over several lines", "B='x\ny'\nA='1\n\n#2\n3='\n", "1\n\n#2\n3="],
  ["an empty value in quotes", "A=''\n", ""],
  ["a blank after the sign is an empty value", "A= '1'\n", ""],
  ["nothing after the sign", "A=\nB='2'\n", ""],
  ["nothing at all after the sign", "A=", ""],
  ["a key that is not there", "B='1'\n", undefined],
  ["a key that is a part of another", "AA='1'\nXA='2'\n", undefined],
  ["a key inside a value", "B='\nA='\n", undefined],
  ["an empty file", "", undefined],
  ["only comments", "# nothing\n\n", undefined],
  ["what comes after the key is not read", "A='1'\nbroken\n", "1"],
];

const broken: [name: string, text: string, line: number][] = [
  ["no sign", "# x\n\nsecret word\n", 3],
  ["no name", "='1'\n", 1],
  ["a blank before the sign", "B ='1'\n", 1],
  ["no quotes", "B=secret\n", 1],
  ["double quotes", 'B="secret"\n', 1],
  ["a quote that is not closed", "C='1\n2'\nB='secret\n\n", 3],
  ["something after the value", "B='1' secret\n", 1],
  ["a quote inside the value", "B='it's secret'\n", 1],
];

describe("a file of variables", () => {
  for (const [name, text, want] of values) test(name, () => assert.equal(envFileValue(text, "A"), want));

  for (const [name, text, line] of broken) {
    test(`${name} is an error that does not show the content`, () => {
      assert.throws(
        () => envFileValue(text, "A"),
        ({ message }: Error) => {
          assert.match(message, new RegExp(`^couldn't parse env file: line ${line} `));
          assert.ok(!message.includes("secret"));
          return true;
        },
      );
    });
  }

  test("is read once for all variables that come from it", () => {
    const from = (path: string, key: string) => ({
      name: key,
      valueFrom: { fileKeyRef: { volumeName: "v", path, key } },
    });
    const refs = envFileReferences({ name: "c", env: [from("a", "X"), from("a", "Y"), from("b", "X"), { name: "Z" }] });
    assert.deepEqual(
      refs.map(({ path }) => path),
      ["a", "b"],
    );
  });
});
