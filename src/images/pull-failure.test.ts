import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { RuntimeError } from "../adapters/runtime/port.ts";
import { messageOf } from "../lib/errors.ts";
import { isAnswer, joinPullErrors, LastAnswers } from "./pull-failure.ts";
import { StuckPullError } from "./pull-progress.ts";

describe("the last answer of a registry", () => {
  const stuck = new StuckPullError("nothing arrives");
  const said = (answers: LastAnswers, image: string): string => messageOf(answers.failed(image, stuck));

  test("is in the error of a pull that gets none", () => {
    const answers = new LastAnswers();
    assert.equal(said(answers, "a:1"), "nothing arrives");
    answers.failed("a:1", new Error("429 Too Many Requests"));
    assert.equal(said(answers, "a:1"), "nothing arrives; the registry's last answer: 429 Too Many Requests");
    assert.equal(said(answers, "b:1"), "nothing arrives");
  });

  test("is forgotten after a successful pull", () => {
    const answers = new LastAnswers();
    answers.failed("a:1", new Error("429 Too Many Requests"));
    answers.succeeded("a:1");
    assert.equal(said(answers, "a:1"), "nothing arrives");
  });

  test("is kept of so many images only, the newest, and clipped", () => {
    const answers = new LastAnswers();
    for (let index = 0; index < 300; index++) answers.failed(`a:${index}`, new Error("x".repeat(5000)));
    assert.equal(said(answers, "a:0"), "nothing arrives");
    assert.ok(said(answers, "a:299").length > 100);
    assert.ok(said(answers, "a:299").length < 700);
  });
});

describe("whether the runtime has answered", () => {
  const failed = (code: "Unknown" | "NotFound" | "Unavailable" | "Timeout", text: string = code): RuntimeError =>
    new RuntimeError(code, text);
  const cases: readonly [name: string, error: unknown, want: boolean][] = [
    ["an error of the registry", failed("Unknown"), true],
    ["an image that does not exist", failed("NotFound"), true],
    ["a runtime that is gone", failed("Unavailable"), false],
    ["a time limit", failed("Timeout"), false],
    ["a stuck pull", new StuckPullError("nothing arrives"), false],
    ["an abort", new Error("aborted"), false],
    ["two credentials, both rejected", joinPullErrors([failed("Unknown", "a"), failed("Unknown", "b")]), true],
    ["two credentials, the first without an answer", joinPullErrors([failed("Timeout"), failed("Unknown")]), false],
    ["two credentials, the second without an answer", joinPullErrors([failed("Unknown"), failed("Timeout")]), false],
  ];
  for (const [name, error, want] of cases) test(name, () => assert.equal(isAnswer(error), want));
});
