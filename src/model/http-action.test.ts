import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { resolvePort } from "./container-port.ts";
import type { HTTPGetAction } from "./generated/types.ts";
import { type HttpRequest, httpActionRequest, requestTarget, urlOf } from "./http-action.ts";

describe("the path of an httpGet", () => {
  const cases: [string, string][] = [
    ["/", "/"],
    ["", "/"],
    ["healthz", "/healthz"],
    ["/x?a=b&c=d", "/x?a=b&c=d"],
    ["?a=b", "/?a=b"],
    ["/x?a=b?c", "/x?a=b?c"],
    ["/x?q=a b", "/x?q=a%20b"],
    ["/x?a=ä", "/x?a=%C3%A4"],
    ["/x?a HTTP/1.1\u010d\u010aInjected: yes", "/x?a%20HTTP/1.1%C4%8D%C4%8AInjected:%20yes"],
    ["/\u010d\u010a", "/%C4%8D%C4%8A"],
    ["/x#part", "/x"],
    ["/x?a=b#part", "/x?a=b"],
    ["/a b", "/a%20b"],
    ["/a%20b", "/a%20b"],
    ["/a%2Fb", "/a%2Fb"],
    ["/a%2Fb c", "/a/b%20c"],
    ["/ä", "/%C3%A4"],
    ["/a!(b)*c", "/a!(b)*c"],
    ["/%zz?a=b", "/%25zz%3Fa=b"],
    ["a:b/c", "/a:b/c"],
    ["a:b?c", "/a:b%3Fc"],
    ["/line\nfeed", "/line%0Afeed"],
    ["//other/x", "/x"],
    ["http://other:1/x?y", "/x?y"],
  ];
  for (const [path, want] of cases) {
    test(`${JSON.stringify(path)} is asked for as ${want}`, () => assert.equal(requestTarget(path), want));
  }
});

describe("the request of an httpGet", () => {
  const container = { ports: [{ name: "web", containerPort: 8080 }, { containerPort: 90 }] };
  const build = (action: HTTPGetAction): HttpRequest =>
    httpActionRequest(action, { podIp: "10.0.0.5", container, userAgent: "kube-probe/1.36" });

  test("a path and query of more than 64 KiB are refused", () => {
    assert.equal(requestTarget(`/${" ".repeat(65_535)}`).length, 1 + 3 * 65_535);
    for (const path of [`/${"a".repeat(65_536)}`, `/?${"a".repeat(65_535)}`]) {
      assert.throws(() => requestTarget(path), /invalid path of 65537 bytes: at most 65536 bytes are allowed/);
    }
  });

  test("goes to the pod's address as kube-probe, taking anything", () => {
    assert.deepEqual(build({ port: 80 }), {
      scheme: "http",
      host: "10.0.0.5",
      port: 80,
      target: "/",
      hostHeader: "10.0.0.5:80",
      headers: [
        ["User-Agent", "kube-probe/1.36"],
        ["Accept", "*/*"],
      ],
    });
  });

  test("takes host, scheme and a named port", () => {
    const request = build({ port: "web", host: "example.test", scheme: "HTTPS", path: "/a?b" });
    assert.equal(urlOf(request), "https://example.test:8080/a?b");
    assert.equal(request.hostHeader, "example.test:8080");
  });

  test("an IPv6 address is written in brackets", () => {
    assert.equal(build({ port: 80, host: "fd00::1" }).hostHeader, "[fd00::1]:80");
  });

  for (const host of ["pod\u010d\u010aX: y", "a b", "ä.test"]) {
    test(`the host ${JSON.stringify(host)} is refused`, () => {
      assert.throws(() => build({ port: 80, host }), /invalid host/);
      assert.throws(() => build({ port: 80, httpHeaders: [{ name: "Host", value: host }] }), /invalid host/);
    });
  }

  const headerCases: { name: string; given: [string, string][]; want: [string, string][]; host?: string }[] = [
    {
      name: "a Host header is honoured, whatever its case",
      given: [["host", "site.test"]],
      want: [
        ["User-Agent", "kube-probe/1.36"],
        ["Accept", "*/*"],
      ],
      host: "site.test",
    },
    {
      name: "own values replace the defaults, an empty one takes them away",
      given: [
        ["user-agent", "mine"],
        ["Accept", ""],
      ],
      want: [["user-agent", "mine"]],
    },
    {
      name: "a header may come twice",
      given: [
        ["X-A", "1"],
        ["X-A", "2"],
      ],
      want: [
        ["User-Agent", "kube-probe/1.36"],
        ["Accept", "*/*"],
        ["X-A", "1"],
        ["X-A", "2"],
      ],
    },
  ];
  for (const { name, given, want, host } of headerCases) {
    test(name, () => {
      const request = build({ port: 80, httpHeaders: given.map(([key, value]) => ({ name: key, value })) });
      assert.deepEqual(request.headers, want);
      assert.equal(request.hostHeader, host ?? "10.0.0.5:80");
    });
  }

  for (const header of [
    { name: "X-A", value: "a\r\nX-B: b" },
    { name: "X A", value: "a" },
  ]) {
    test(`a header that would break the request is refused: ${JSON.stringify(header)}`, () => {
      assert.throws(() => build({ port: 80, httpHeaders: [header] }), /invalid header field/);
    });
  }
});

describe("ports", () => {
  const ports = { ports: [{ name: "web", containerPort: 8080 }] };
  test("a number, a number as text, a name", () => {
    assert.deepEqual([resolvePort(80, ports), resolvePort("81", ports), resolvePort("web", ports)], [80, 81, 8080]);
  });
  for (const [port, message] of [
    ["nothing", /couldn't find port: nothing/],
    [0, /invalid port number: 0/],
    [70_000, /invalid port number: 70000/],
  ] as const) {
    test(`${port} is none`, () => assert.throws(() => resolvePort(port, ports), message));
  }
});
