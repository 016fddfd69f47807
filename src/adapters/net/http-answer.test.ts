import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { HttpAnswerReader } from "./http-answer.ts";

/** Feeds the pieces one after the other; tells after which it was complete, or what was wrong. */
function read(...pieces: string[]): {
  status?: number;
  body?: string;
  location?: string;
  after?: number;
  error?: string;
} {
  const reader = new HttpAnswerReader(20);
  try {
    for (const [index, piece] of pieces.entries()) {
      if (reader.take(piece)) return { ...pick(reader), after: index + 1 };
    }
    reader.end();
    return pick(reader);
  } catch (error) {
    return { error: (error as Error).message };
  }
}

function pick(reader: HttpAnswerReader): { status?: number; body?: string; location?: string } {
  const { answer } = reader;
  assert.ok(answer !== undefined);
  const { status, body, location } = answer;
  return { status, body, ...(location === undefined ? {} : { location }) };
}

const cases: { name: string; pieces: string[]; want: ReturnType<typeof read> }[] = [
  {
    name: "a plain answer is complete with its length",
    pieces: ["HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "more"],
    want: { status: 200, body: "ok", after: 1 },
  },
  {
    name: "it may come byte by byte",
    pieces: "HTTP/1.0 503 no\r\nContent-Length: 1\r\n\r\nx".split(""),
    want: { status: 503, body: "x", after: 39 },
  },
  {
    name: "without a length it ends with the connection",
    pieces: ["HTTP/1.1 200 OK\r\n\r\nok", "ok"],
    want: { status: 200, body: "okok" },
  },
  {
    name: "no words behind the code",
    pieces: ["HTTP/1.1 204\r\n\r\n"],
    want: { status: 204, body: "", after: 1 },
  },
  {
    name: "bare line feeds",
    pieces: ["HTTP/1.1 200 OK\nContent-Length: 0\n\n"],
    want: { status: 200, body: "", after: 1 },
  },
  {
    name: "headers that are none, twice the length, a length that is none",
    pieces: [
      "HTTP/1.1 200 OK\r\nrubbish\r\n: x\r\nContent-Length: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    ],
    want: { status: 200, body: "a", after: 1 },
  },
  {
    name: "chunks, complete with the last",
    pieces: ["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n", "3;x=y\r\nabc\r\n0\r\n\r\n"],
    want: { status: 200, body: "okabc", after: 2 },
  },
  {
    name: "chunks and a length together, which strict parsers refuse",
    pieces: ["HTTP/1.1 200 OK\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n"],
    want: { status: 200, body: "a", after: 1 },
  },
  {
    name: "a body over the limit is cut off",
    pieces: [`HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n${"x".repeat(30)}`],
    want: { status: 200, body: "x".repeat(20), after: 1 },
  },
  {
    name: "a body that breaks off is no failure",
    pieces: ["HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nab"],
    want: { status: 200, body: "ab" },
  },
  {
    name: "informational answers come first",
    pieces: [
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    ],
    want: { status: 200, body: "", after: 1 },
  },
  {
    name: "a redirect says where to",
    pieces: ["HTTP/1.1 302 Found\r\nLOCATION:  /x \r\nContent-Length: 0\r\n\r\n"],
    want: { status: 302, body: "", location: "/x", after: 1 },
  },
  { name: "nothing at all", pieces: [], want: { error: "EOF" } },
  { name: "a head that breaks off", pieces: ["HTTP/1.1 200 OK\r\nContent-Le"], want: { error: "unexpected EOF" } },
  { name: "another protocol", pieces: ["SSH-2.0-x\r\n"], want: { error: 'malformed HTTP response "SSH-2.0-x"' } },
  { name: "a code that is none", pieces: ["HTTP/1.1 20 OK\r\n"], want: { error: 'malformed HTTP status code "20"' } },
  { name: "a version that is none", pieces: ["HTTQ 200 OK\r\n"], want: { error: 'malformed HTTP version "HTTQ"' } },
];

describe("an HTTP answer", () => {
  for (const { name, pieces, want } of cases) test(name, () => assert.deepEqual(read(...pieces), want));
});

test("a head that comes byte by byte is searched once, not once for each byte", () => {
  const head = `HTTP/1.1 200 OK\r\n${"X: x\r\n".repeat(3000)}Content-Length: 0\r\n\r\n`;
  const reader = new HttpAnswerReader(20);
  let wasEarly = false;
  const searched = countSearched(() => {
    for (const char of head.slice(0, -1)) wasEarly ||= reader.take(char);
    assert.equal(reader.take("\n"), true);
  });
  assert.equal(wasEarly, false);
  assert.equal(reader.answer?.status, 200);
  // Each byte for itself, and the whole head a few times once it is complete.
  assert.ok(searched >= head.length && searched < 10 * head.length, `${searched} of ${head.length}`);
});

/** How many characters `work` searches through. */
function countSearched(work: () => void): number {
  let searched = 0;
  const { indexOf, includes } = String.prototype;
  const { exec } = RegExp.prototype;
  const restore = [
    replace(String.prototype, "indexOf", function (this: string, what: string, from = 0) {
      const found = indexOf.call(this, what, from);
      searched += (found === -1 ? this.length : found + 1) - from;
      return found;
    }),
    replace(String.prototype, "includes", function (this: string, what: string, from = 0) {
      searched += this.length - from;
      return includes.call(this, what, from);
    }),
    replace(RegExp.prototype, "exec", function (this: RegExp, text: string) {
      searched += text.length;
      return exec.call(this, text);
    }),
  ];
  try {
    work();
  } finally {
    for (const undo of restore) undo();
  }
  return searched;
}

function replace<T extends object, K extends keyof T>(of: T, name: K, by: T[K]): () => void {
  const original = of[name];
  of[name] = by;
  return () => {
    of[name] = original;
  };
}
