import assert from "node:assert/strict";
import { test } from "node:test";
import { type ContainerdSettings, parseContainerdVersion, renderContainerdConfig } from "./containerd-config.ts";

const versions = [
  {
    output: "containerd github.com/containerd/containerd 1.6.20~ds1 1.6.20~ds1-1+deb12u3\n",
    want: { major: 1, minor: 6 },
  },
  { output: "containerd github.com/containerd/containerd/v2 v2.4.2 abcdef\n", want: { major: 2, minor: 4 } },
  {
    output: "containerd containerd.io 1.7.27 05044ec0a9a75232cad458027ca83437aae3f4da\n",
    want: { major: 1, minor: 7 },
  },
  { output: "sh: containerd: not found", want: undefined },
  { output: "", want: undefined },
];
for (const { output, want } of versions) {
  test(`version of ${JSON.stringify(output.slice(0, 60))}`, () => {
    assert.deepEqual(parseContainerdVersion(output), want);
  });
}

const settings: ContainerdSettings = {
  version: { major: 1, minor: 6 },
  root: "/s/containerd",
  state: "/s/run/containerd",
  socket: "/s/run/containerd.sock",
  runcRoot: "/s/run/runc",
  shimSocketDir: "/s/run/s",
  cniBinDir: "/usr/lib/cni",
  cniConfDir: "/s/cni/net.d",
  certsDir: "/s/certs.d",
  sandboxImage: "kubelet.local/pause:1",
  snapshotter: "native",
  mayLowerOomScore: false,
};

test("containerd 1 gets configuration version 2 with everything below the state directory", () => {
  const text = renderContainerdConfig(settings);
  assert.match(text, /^version = 2$/m);
  assert.match(text, /^sandbox_image = "kubelet.local\/pause:1"$/m);
  assert.match(text, /^snapshotter = "native"$/m);
  assert.match(text, /^netns_mounts_under_state_dir = true$/m);
  assert.match(text, /^bin_dir = "\/usr\/lib\/cni"$/m);
  // Every absolute path but the plug-ins' is ours.
  for (const [path] of text.matchAll(/"\/[^"]*"/g)) assert.match(path, /^"\/(s\/|usr\/lib\/cni)/);
});

test("containerd 2 gets configuration version 3 and a directory for the shims' sockets", () => {
  const text = renderContainerdConfig({ ...settings, version: { major: 2, minor: 4 } });
  assert.match(text, /^version = 3$/m);
  assert.match(text, /^sandbox = "kubelet.local\/pause:1"$/m);
  assert.match(text, /^socket_dir = "\/s\/run\/s"$/m);
  assert.match(text, /^bin_dirs = \["\/usr\/lib\/cni"\]$/m);
  assert.doesNotMatch(text, /sandbox_image/);
});

test("a shim socket directory that is too long for unix sockets is not asked for", () => {
  const shimSocketDir = `/${"x".repeat(50)}`;
  const text = renderContainerdConfig({ ...settings, version: { major: 2, minor: 4 }, shimSocketDir });
  assert.doesNotMatch(text, /socket_dir/);
});

const oom = [
  { mayLowerOomScore: true, score: -999, restrict: false },
  { mayLowerOomScore: false, score: 0, restrict: true },
];
for (const { mayLowerOomScore, score, restrict } of oom) {
  test(`OOM scores are ${restrict ? "not " : ""}lowered ${mayLowerOomScore ? "with" : "without"} the capability`, () => {
    const text = renderContainerdConfig({ ...settings, mayLowerOomScore });
    assert.match(text, new RegExp(`^oom_score = ${score}$`, "m"));
    assert.match(text, new RegExp(`^restrict_oom_score_adj = ${restrict}$`, "m"));
  });
}

test("a path with quotes and backslashes stays one TOML string", () => {
  assert.match(renderContainerdConfig({ ...settings, root: '/a"b\\c' }), /^root = "\/a\\"b\\\\c"$/m);
});
