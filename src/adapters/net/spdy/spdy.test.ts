import assert from "node:assert/strict";
import { Duplex } from "node:stream";
import { test } from "node:test";
import { constants, inflateSync } from "node:zlib";
import { EXEC_PROTOCOL, exitCode, runExec } from "./exec.ts";
import { type Frame, FrameReader, FrameWriter } from "./frames.ts";
import { SpdySession } from "./session.ts";

/** SPDY/3's dictionary: words with their lengths before them, and one long tail. */
const WORDS = `options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges age
  allow authorization cache-control connection content-base content-encoding content-language content-length
  content-location content-md5 content-range content-type date etag expect expires from host if-match
  if-modified-since if-none-match if-range if-unmodified-since last-modified location max-forwards pragma
  proxy-authenticate proxy-authorization range referer retry-after server te trailer transfer-encoding upgrade
  user-agent vary via warning www-authenticate method get status 200_OK version HTTP/1.1 url public set-cookie
  keep-alive origin`;
const TAIL =
  "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden404 Not Found500 Internal Server Error501 Not Implemented503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,text/javascript,publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0.";

function dictionary(): Buffer {
  const parts = WORDS.trim()
    .split(/\s+/)
    .flatMap((word) => {
      const length = Buffer.alloc(4);
      length.writeUInt32BE(word.length);
      return [length, Buffer.from(word.replace("_", " "))];
    });
  return Buffer.concat([...parts, Buffer.from(TAIL)]);
}

test("headers are one zlib stream over all streams of the connection, with SPDY's dictionary", () => {
  const writer = new FrameWriter();
  const frames = [writer.synStream(1, { streamtype: "error" }), writer.synStream(3, { port: "80", requestid: "0" })];
  const compressed = Buffer.concat(frames.map((frame) => frame.subarray(18)));
  const text = inflateSync(compressed, { dictionary: dictionary(), finishFlush: constants.Z_SYNC_FLUSH });
  const want =
    "00000001 0000000a streamtype 00000005 error 00000002 00000004 port 00000002 80 00000009 requestid 00000001 0";
  const bytes = Buffer.concat(
    want.split(" ").map((part) => (part.startsWith("0000") ? Buffer.from(part, "hex") : Buffer.from(part))),
  );
  assert.deepEqual(text, bytes);
  assert.equal(frames[1]?.readUInt32BE(0), 0x8003_0001);
  assert.equal(frames[1]?.readUInt32BE(8), 3);
});

function data(stream: number, text: string, isLast = false): Buffer {
  return Buffer.concat([new FrameWriter().dataHead(stream, Buffer.byteLength(text), isLast), Buffer.from(text)]);
}

test("frames are found wherever the bytes are cut", () => {
  const bytes = Buffer.concat([
    data(3, "hello"),
    new FrameWriter().ping(2),
    new FrameWriter().reset(5),
    data(3, "", true),
  ]);
  const want: Frame[] = [
    { kind: "data", stream: 3, isLast: false, bytes: Buffer.from("hello") },
    { kind: "ping", id: 2 },
    { kind: "reset", stream: 5, status: 5 },
    { kind: "data", stream: 3, isLast: true, bytes: Buffer.alloc(0) },
  ];
  for (let size = 1; size <= bytes.length; size++) {
    const reader = new FrameReader();
    const frames: Frame[] = [];
    for (let at = 0; at < bytes.length; at += size) frames.push(...reader.read(bytes.subarray(at, at + size)));
    assert.deepEqual(frames, want, `in pieces of ${size}`);
  }
});

test("data that is not SPDY is rejected", () => {
  assert.throws(
    () => [...new FrameReader().read(Buffer.from("HTTP/1.1 400 Bad Request\r\n\r\n"))],
    /frame is too long/,
  );
  assert.throws(() => [...new FrameReader().read(Buffer.from("8002000100000000", "hex"))], /not SPDY\/3/);
});

/** The other end of a connection: what was written to it, and a way to speak. */
class Peer extends Duplex {
  readonly frames: Frame[] = [];
  readonly raw: Buffer[] = [];
  private readonly reader = new FrameReader();
  onFrame: (frame: Frame) => void = () => undefined;

  override _read(): void {}

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.raw.push(chunk);
    for (const frame of this.reader.read(chunk)) {
      this.frames.push(frame);
      this.onFrame(frame);
    }
    done();
  }
}

const ended = (status: object): string => JSON.stringify({ metadata: {}, ...status });
const NON_ZERO = ended({
  status: "Failure",
  reason: "NonZeroExitCode",
  details: { causes: [{ reason: "ExitCode", message: "7" }] },
});

function ends(stdin?: AsyncIterable<Uint8Array>) {
  const got = { stdout: "", stderr: "" };
  const take = (name: "stdout" | "stderr") => async (bytes: Uint8Array) => {
    got[name] += Buffer.from(bytes).toString();
  };
  return { got, ends: { ...(stdin && { stdin }), stdout: take("stdout"), stderr: take("stderr") } };
}

const { signal } = new AbortController();

test("exec: output, the end of input, and the exit code", async () => {
  const peer = new Peer();
  async function* input() {
    yield Buffer.from("ping");
  }
  // Streams in the order in which they are opened: 1 error, 3 stdin, 5 stdout, 7 stderr.
  peer.onFrame = (frame) => {
    if (frame.kind !== "data" || frame.stream !== 3 || !frame.isLast) return;
    peer.push(Buffer.concat([data(5, "out"), data(7, "err"), data(1, NON_ZERO, true)]));
    peer.push(null);
  };
  const { got, ends: given } = ends(input());
  assert.equal(await runExec({ socket: peer, head: Buffer.alloc(0) }, given, { signal }), 7);
  assert.deepEqual(got, { stdout: "out", stderr: "err" });
  const sent = peer.frames.flatMap((frame) => (frame.kind === "data" ? [frame.bytes.toString()] : []));
  assert.deepEqual(sent, ["ping", ""]);
  assert.equal(EXEC_PROTOCOL, "v4.channel.k8s.io");
});

test("exec: a connection that ends without a word about the command is an error, not a success", async () => {
  const peer = new Peer();
  peer.push(data(3, "half"));
  peer.push(null);
  await assert.rejects(runExec({ socket: peer, head: Buffer.alloc(0) }, ends().ends, { signal }), /lost before/);
});

test("exec: a terminal tells its size, and each change of it", async () => {
  const peer = new Peer();
  let resized: () => void = () => undefined;
  let columns = 80;
  const terminal = {
    size: () => ({ columns, rows: 24 }),
    onResize: (fn: () => void) => {
      resized = fn;
    },
  };
  const running = runExec({ socket: peer, head: Buffer.alloc(0) }, { ...ends().ends, terminal }, { signal });
  columns = 100;
  resized();
  await new Promise((resolve) => setImmediate(resolve));
  peer.push(data(1, ended({ status: "Success" }), true));
  peer.push(null);
  assert.equal(await running, 0);
  const sent = peer.frames.flatMap((frame) => (frame.kind === "data" ? [frame.bytes.toString()] : []));
  assert.deepEqual(sent, ['{"Width":80,"Height":24}', '{"Width":100,"Height":24}']);
});

test("exec: an abort ends it at once", async () => {
  const controller = new AbortController();
  const running = runExec({ socket: new Peer(), head: Buffer.alloc(0) }, ends().ends, controller);
  controller.abort(new Error("enough"));
  await assert.rejects(running, /enough/);
});

const codes = [
  { text: ended({ status: "Success" }), want: 0 },
  { text: NON_ZERO, want: 7 },
  { text: ended({ status: "Failure", message: "no such file" }), want: /no such file/ },
  { text: "plain words of an old server", want: /plain words/ },
  { text: "", want: /lost before/ },
];
for (const { text, want } of codes) {
  test(`exec: the end told as ${JSON.stringify(text).slice(0, 60)}`, () => {
    if (typeof want === "number") assert.equal(exitCode(text), want);
    else assert.throws(() => exitCode(text), want);
  });
}

test("a session answers their pings, tells resets and the end, and is slowed down by a slow reader", async () => {
  const peer = new Peer();
  const session = new SpdySession(peer, Buffer.alloc(0));
  const heard: string[] = [];
  let go: () => void = () => undefined;
  const slow = new Promise<void>((resolve) => {
    go = resolve;
  });
  session.open({}, { data: () => slow, end: (error) => heard.push(`1 ${error?.code}`) });
  session.open({}, { data: () => void heard.push("3 data"), end: (error) => heard.push(`3 ${error?.code}`) });
  const running = session.run();
  peer.push(Buffer.concat([new FrameWriter().ping(8), new FrameWriter().ping(9), data(1, "x"), data(3, "y")]));
  peer.push(Buffer.concat([new FrameWriter().reset(3)]));
  peer.push(null);
  for (let round = 0; round < 5; round++) await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(heard, []);
  assert.deepEqual(peer.frames.at(-1), { kind: "ping", id: 8 });
  go();
  await running;
  assert.deepEqual(heard, ["3 data", "3 Reset", "1 Lost"]);
});
