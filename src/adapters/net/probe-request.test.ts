import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import type { HTTPGetAction } from "../../model/generated/types.ts";
import { httpActionRequest } from "../../model/http-action.ts";
import { encodeRequest } from "./probe-http.ts";

const FACTS = { podIp: "10.0.0.5", container: {}, userAgent: "kube-probe/1.36" };

/** The lines on the wire, or undefined where the action was refused. */
function linesOf(action: HTTPGetAction): string[] | undefined {
  let bytes: Buffer;
  try {
    bytes = encodeRequest(httpActionRequest(action, FACTS));
  } catch {
    return undefined;
  }
  const text = bytes.toString("latin1");
  assert.ok(text.endsWith("\r\n\r\n"));
  return text.slice(0, -4).split("\r\n");
}

describe("the bytes of an httpGet", () => {
  test("a path cannot add lines, whatever its characters become in latin1", () => {
    const lines = linesOf({ port: 80, path: "/x?a HTTP/1.1\u010d\u010aInjected: yes" });
    assert.deepEqual(lines, [
      "GET /x?a%20HTTP/1.1%C4%8D%C4%8AInjected:%20yes HTTP/1.1",
      "Host: 10.0.0.5:80",
      "User-Agent: kube-probe/1.36",
      "Accept: */*",
      "Connection: close",
    ]);
  });

  test("a header value is sent as UTF-8", () => {
    const lines = linesOf({ port: 80, httpHeaders: [{ name: "X-Name", value: "\u010d\u010a" }] }) ?? [];
    assert.equal(Buffer.from(lines[4] ?? "", "latin1").toString("utf8"), "X-Name: \u010d\u010a");
    assert.equal(lines.length, 6);
  });

  test("bytes that end a line are refused even when they come from elsewhere than an action", () => {
    const request = { scheme: "http", host: "h", port: 1, hostHeader: "h", headers: [] } as const;
    assert.throws(() => encodeRequest({ ...request, target: "/\r\nX: y" }), /line end/);
    assert.throws(() => encodeRequest({ ...request, target: "/a b" }), /printable ASCII/);
    assert.throws(() => encodeRequest({ ...request, target: "/", headers: [["A", "b\nc"]] }), /line end/);
  });

  test("no action of any characters adds or splits a line", () => {
    // Characters whose low byte is a line end, a space or a zero are as likely as all others together.
    const tricky = fc.constantFrom(
      "\u010d",
      "\u010a",
      "\r",
      "\n",
      "\0",
      " ",
      "\u0120",
      "\u0100",
      "?",
      "#",
      "%",
      "/",
      ":",
    );
    const text = fc.array(fc.oneof(tricky, fc.string({ unit: "binary", maxLength: 3 })), { maxLength: 12 });
    const words = text.map((parts) => parts.join(""));
    const headers = fc.array(fc.record({ name: words, value: words }), { maxLength: 3 });
    const action = fc.record({ path: words, httpHeaders: headers, host: fc.oneof(words, fc.constant("")) });
    fc.assert(
      fc.property(action, (given) => {
        const lines = linesOf({ ...given, port: 80 });
        if (lines === undefined) return;
        assert.match(lines[0] ?? "", /^GET \/[\x21-\x7e]* HTTP\/1\.1$/);
        for (const line of lines) assert.doesNotMatch(line, /[\r\n\0]/);
        for (const line of lines.slice(1)) assert.match(line, /^[!#$%&'*+.^_`|~0-9A-Za-z-]+: /);
        assert.ok(lines.length <= 5 + given.httpHeaders.length, lines.join("|"));
        assert.equal(lines.filter((line) => /^host:/i.test(line)).length, 1);
      }),
      { numRuns: 2000 },
    );
  });
});
