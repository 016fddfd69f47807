import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { endpointProblem, resourceNameProblem, versionProblem } from "./register-request.ts";

describe("a plugin that registers", () => {
  test("names an extended resource", () => {
    for (const name of ["nvidia.com/gpu", "example.com/a-b_C.d"]) assert.equal(resourceNameProblem(name), undefined);
    const bad = ["cpu", "kubernetes.io/x", "a.kubernetes.io/x", "requests.example.com/x", "example.com/", "/x", ""];
    for (const name of [...bad, "example.com/a b", "Example.com/x", `example.com/${"x".repeat(64)}`]) {
      assert.equal(resourceNameProblem(name), `the ResourceName ${JSON.stringify(name)} is invalid`);
    }
    assert.ok((resourceNameProblem(`example.com/${"x".repeat(1_000_000)}`) ?? "").length < 1100);
  });

  test("speaks v1beta1", () => {
    assert.equal(versionProblem(["v1alpha", "v1beta1"]), undefined);
    assert.equal(
      versionProblem(["v2"]),
      'requested API version "v2" is not supported by kubelet. Supported version is ["v1beta1"]',
    );
  });

  test("has its socket below the directory of plugins", () => {
    // Paths are cleaned when they are joined, as in Kubernetes.
    for (const name of ["a.sock", "vendor/a.sock", "./a.sock", "vendor//./a.sock"]) {
      assert.equal(endpointProblem(name), undefined, name);
    }
    const outside = ["../x", "a/../../x", "./../x", "..", "/run/containerd/containerd.sock", "//x"];
    for (const name of [...outside, "", ".", "./", "a\0b", "x".repeat(2000), `${"./".repeat(600)}a`]) {
      assert.match(endpointProblem(name) ?? "", /is not a socket in the directory of device plugins/);
    }
  });
});
