import assert from "node:assert/strict";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { AbortedError } from "../../lib/abort.ts";
import { fetchManifest, HttpGetError } from "./http-get.ts";

async function withServer(handler: RequestListener, work: (url: string) => Promise<void>): Promise<void> {
  const server = createServer(handler);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  // A listening TCP server has an address with a port.
  const { port } = server.address() as AddressInfo;
  try {
    await work(`http://127.0.0.1:${port}/`);
  } finally {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
}

function options(signal = new AbortController().signal) {
  return { headers: {}, etag: "", maxBytes: 1000, signal };
}

function code(want: HttpGetError["code"]): (error: unknown) => boolean {
  return (error) => error instanceof HttpGetError && error.code === want;
}

test("a text comes with its tag, and repeated headers are sent", async () => {
  const seen: string[] = [];
  const handler: RequestListener = (request, response) => {
    seen.push(...request.rawHeaders.filter((_, at, all) => all[at - 1] === "X-Key"));
    response.setHeader("ETag", '"1"').end("hällo");
  };
  await withServer(handler, async (url) => {
    const answer = await fetchManifest(url, { ...options(), headers: { "X-Key": ["a", "b"] } });
    assert.deepEqual(answer, { kind: "content", body: "hällo", etag: '"1"' });
    assert.deepEqual(seen, ["a", "b"]);
  });
});

test("the tag is sent back and 304 means unchanged", async () => {
  const handler: RequestListener = (request, response) => {
    response.statusCode = request.headers["if-none-match"] === '"1"' ? 304 : 500;
    response.end();
  };
  await withServer(handler, async (url) => {
    assert.deepEqual(await fetchManifest(url, { ...options(), etag: '"1"' }), { kind: "unchanged" });
  });
});

test("any other status is an error that names it", async () => {
  const handler: RequestListener = (_, response) => void response.writeHead(503).end("x");
  await withServer(handler, async (url) => {
    await assert.rejects(fetchManifest(url, options()), /answered 503 Service Unavailable/);
  });
});

test("a body over the limit is refused while it comes", async () => {
  const handler: RequestListener = (_, response) => void response.write("x".repeat(2000));
  await withServer(handler, (url) => assert.rejects(fetchManifest(url, options()), code("TooLarge")));
});

test("an answer that breaks off is an error", async () => {
  const handler: RequestListener = (_, response) => {
    response.writeHead(200, { "Content-Length": "100" });
    response.write("half");
    setImmediate(() => response.destroy());
  };
  await withServer(handler, (url) => assert.rejects(fetchManifest(url, options()), code("Unreachable")));
});

test("a port without a listener is an error", async () => {
  let dead = "";
  await withServer(
    () => undefined,
    async (url) => {
      dead = url;
    },
  );
  await assert.rejects(fetchManifest(dead, options()), code("Unreachable"));
});

test("an abort ends a request that hangs, with the abort's reason", async () => {
  const controller = new AbortController();
  const reason = new AbortedError();
  await withServer(
    () => controller.abort(reason),
    (url) => assert.rejects(fetchManifest(url, options(controller.signal)), (error) => error === reason),
  );
});

test("an abort ends an answer that hangs, with the abort's reason", async () => {
  const controller = new AbortController();
  const reason = new AbortedError();
  const handler: RequestListener = (_, response) => {
    response.write("x");
    setImmediate(() => setImmediate(() => controller.abort(reason)));
  };
  await withServer(handler, (url) =>
    assert.rejects(fetchManifest(url, options(controller.signal)), (error) => error === reason),
  );
});

test("a redirect is followed; another server does not see the headers", async () => {
  let seen: string | undefined = "nothing asked";
  const target: RequestListener = (request, response) => {
    seen = request.headers.authorization;
    response.end("there");
  };
  await withServer(target, (targetUrl) =>
    withServer(
      (_, response) => void response.writeHead(302, { Location: `${targetUrl}x` }).end(),
      async (url) => {
        const answer = await fetchManifest(url, { ...options(), headers: { Authorization: ["secret"] } });
        assert.deepEqual(answer, { kind: "content", body: "there", etag: "" });
        assert.equal(seen, undefined);
      },
    ),
  );
});

test("redirects in a circle end", async () => {
  const handler: RequestListener = (_, response) => void response.writeHead(302, { Location: "/" }).end();
  await withServer(handler, (url) => assert.rejects(fetchManifest(url, options()), code("TooManyRedirects")));
});

for (const url of ["", "not a url", "ftp://x/", "file:///etc/passwd"]) {
  test(`${JSON.stringify(url)} is refused`, () => assert.rejects(fetchManifest(url, options()), code("InvalidUrl")));
}

test("a header that HTTP cannot carry is an error, not a crash, and its value is not told", async () => {
  await assert.rejects(
    fetchManifest("http://127.0.0.1:9/", { ...options(), headers: { "X-Key": ["sec\nret"] } }),
    (error) => error instanceof HttpGetError && !error.message.includes("ret"),
  );
});
