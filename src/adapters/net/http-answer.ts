/** What was read of an HTTP answer. */
export interface HttpAnswer {
  readonly status: number;
  /** The Location header, if there is one. */
  readonly location: string | undefined;
  /** At most the limit; not decoded from chunks. */
  readonly body: string;
}

interface Head {
  readonly status: number;
  readonly location: string | undefined;
  /** Bytes of the body; undefined: up to the end of the connection. */
  readonly length: number | undefined;
  readonly isChunked: boolean;
}

/** A head over this is no answer to a probe. */
const LARGEST_HEAD = 1024 * 1024;
const LAST_CHUNK = "0\r\n\r\n";
/** Informational answers that may come before the real one. */
const MOST_INFORMATIONAL = 5;

/**
 * Reads an answer as bytes come. It judges by the status line and takes what strict parsers refuse: odd headers,
 * bare line feeds, a body of the wrong length. Each byte of a head is looked at once, however small the packets are.
 */
export class HttpAnswerReader {
  /** The head as it came, in pieces. Bytes are latin1, so that one character is one byte. */
  private readonly pieces: string[] = [];
  private headLength = 0;
  private readonly headEnd = new HeadEnd();
  private hasStatusLine = false;
  /** The body. */
  private text = "";
  private head: Head | undefined;
  private informational = 0;

  constructor(private readonly bodyLimit: number) {}

  /** Takes more bytes; true when the answer is complete, or more of it would be cut off. Throws when it is none. */
  take(bytes: string): boolean {
    let rest = bytes;
    while (this.head === undefined) {
      const next = this.takeHead(rest);
      if (next === undefined) return false;
      rest = next;
    }
    this.text += rest;
    return this.isComplete(this.head);
  }

  /** The answer so far, or undefined when not even its head is there. */
  get answer(): HttpAnswer | undefined {
    const { head } = this;
    if (head === undefined) return undefined;
    const length = Math.min(this.bodyLimit, head.length ?? this.bodyLimit);
    const raw = this.text.slice(0, length);
    const body = utf8Of(head.isChunked ? unchunk(raw) : raw);
    return { status: head.status, location: head.location, body };
  }

  /** The other side has closed: throws unless there is an answer. */
  end(): HttpAnswer {
    if (this.answer !== undefined) return this.answer;
    if (this.headLength === 0) throw new Error("EOF");
    // A head that breaks off may still have its status line.
    parseStatusLine(this.pieces.join(""));
    throw new Error("unexpected EOF");
  }

  /** Adds to the head. Returns what follows it, or undefined while it has not ended. */
  private takeHead(bytes: string): string | undefined {
    const next = this.headEnd.find(bytes);
    const piece = next === undefined ? bytes : bytes.slice(0, next);
    this.pieces.push(piece);
    this.headLength += piece.length;
    if (next === undefined) {
      if (this.headLength > LARGEST_HEAD) throw new Error("the response header is too large");
      this.checkStatusLine(piece);
      return undefined;
    }
    const head = parseHead(this.pieces.join(""));
    this.pieces.length = 0;
    this.headLength = 0;
    this.hasStatusLine = false;
    if (head.status < 100 || head.status >= 200 || head.status === 101) this.head = head;
    else if (++this.informational > MOST_INFORMATIONAL) throw new Error("too many 1xx informational responses");
    return bytes.slice(next);
  }

  /** What does not begin as an answer is refused as soon as its first line is there. */
  private checkStatusLine(piece: string): void {
    if (this.hasStatusLine || !piece.includes("\n")) return;
    this.hasStatusLine = true;
    parseStatusLine(this.pieces.join(""));
  }

  private isComplete({ status, length, isChunked }: Head): boolean {
    if (this.text.length >= this.bodyLimit) return true;
    if (status === 204 || status === 304 || status === 101) return true;
    if (isChunked) return this.text.endsWith(LAST_CHUNK);
    return length !== undefined && this.text.length >= length;
  }
}

/** Finds the empty line that ends a head, strict or of bare line feeds, over pieces of any size. */
class HeadEnd {
  /** What came last: a line feed, a line feed and a carriage return, or neither. */
  private after: "line" | "feed" | "return" = "line";

  /** Returns the index behind the empty line, or undefined where it is not in this piece. */
  find(piece: string): number | undefined {
    for (let at = 0; at < piece.length; at++) {
      // indexOf skips a line at once: this is done for every probe.
      if (this.after === "line") {
        at = piece.indexOf("\n", at);
        if (at === -1) return undefined;
        this.after = "feed";
        continue;
      }
      const code = piece.charCodeAt(at);
      const isReturn = code === CR && this.after === "feed";
      this.after = isReturn ? "return" : "line";
      if (code === LF) return at + 1;
    }
    return undefined;
  }
}

const CR = 13;
const LF = 10;

function parseHead(text: string): Head {
  const status = parseStatusLine(text);
  let location: string | undefined;
  let length: number | undefined;
  let isChunked = false;
  for (let from = text.indexOf("\n") + 1; from > 0; ) {
    const feed = text.indexOf("\n", from);
    const line = text.slice(from, feed === -1 ? undefined : feed);
    from = feed + 1;
    const colon = line.indexOf(":");
    if (colon === -1) continue;
    switch (headerName(line, colon)) {
      case "location":
        location ??= utf8Of(line.slice(colon + 1).trim());
        break;
      case "content-length": {
        const value = line.slice(colon + 1).trim();
        if (/^\d+$/.test(value)) length ??= Number(value);
        break;
      }
      case "transfer-encoding":
        isChunked ||= line.slice(colon).toLowerCase().includes("chunked");
        break;
      default:
    }
  }
  return { status, location, length: isChunked ? undefined : length, isChunked };
}

/** The name in small letters, if its first one is that of a name that counts. */
function headerName(line: string, colon: number): string {
  const first = line[0] ?? "";
  return "lctLCT \t".includes(first) ? line.slice(0, colon).trim().toLowerCase() : "";
}

/** Bytes that were read as latin1, as the text that they are. */
function utf8Of(bytes: string): string {
  return /[^\0-\x7f]/.test(bytes) ? Buffer.from(bytes, "latin1").toString("utf8") : bytes;
}

/** The code of the first line, by the rules of Go's client: `HTTP/x.y`, a space, three digits. */
function parseStatusLine(text: string): number {
  const usual = /^HTTP\/1\.[01] (\d{3})[ \r\n]/.exec(text)?.[1];
  if (usual !== undefined) return Number(usual);
  const line = /^[^\r\n]*/.exec(text)?.[0] ?? "";
  const space = line.indexOf(" ");
  const version = space === -1 ? "" : line.slice(0, space);
  const code =
    line
      .slice(space + 1)
      .trimStart()
      .split(" ", 1)[0] ?? "";
  if (space === -1) throw new Error(`malformed HTTP response ${JSON.stringify(line)}`);
  if (!/^\d{3}$/.test(code)) throw new Error(`malformed HTTP status code ${JSON.stringify(code)}`);
  if (!/^HTTP\/\d\.\d$/.test(version)) throw new Error(`malformed HTTP version ${JSON.stringify(version)}`);
  return Number(code);
}

/** The data of chunks, as far as they came. */
function unchunk(raw: string): string {
  let data = "";
  let at = 0;
  for (;;) {
    const line = /^([0-9A-Fa-f]+)[^\n]*\n/.exec(raw.slice(at, at + 1024));
    const size = Number.parseInt(line?.[1] ?? "0", 16);
    if (line === null || size === 0) return data;
    at += line[0].length;
    data += raw.slice(at, at + size);
    at += size + 2;
  }
}
