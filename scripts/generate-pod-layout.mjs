// `generate-pod-layout.mjs`: writes src/model/generated/pod-layout.ts from the Go types of Kubernetes' published module.
// The UID of a static pod is a hash of the printed Go object (see src/model/pod-dump.ts), so its types belong to the
// version of Kubernetes that this agent is compatible with. Needs Go; run it when that version changes.
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const VERSION = process.env.KUBE_VERSION || "v1.36.3";
const TARGET = join(import.meta.dirname, "../src/model/generated/pod-layout.ts");
const env = { ...process.env, CGO_ENABLED: "0", GOWORK: "off", GOFLAGS: "-mod=mod -buildvcs=false" };

/** Prints the fields of all types of a pod as JSON: name in Go, name in the API, type. */
const PROGRAM = `package main

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/apis/core"
)

var layouts = map[string][][3]string{}
var opaque = map[string]bool{"resource.Quantity": true, "intstr.IntOrString": true, "v1.Time": true, "v1.TypeMeta": true}

func elem(t reflect.Type, kind reflect.Kind) reflect.Type {
	if t == nil || t.Kind() != kind {
		return nil
	}
	return t.Elem()
}

func describe(in, api reflect.Type) string {
	switch in.Kind() {
	case reflect.Pointer:
		return "*" + describe(in.Elem(), elem(api, reflect.Pointer))
	case reflect.Slice:
		return "[]" + describe(in.Elem(), elem(api, reflect.Slice))
	case reflect.Map:
		return "map " + in.String() + " " + describe(in.Elem(), elem(api, reflect.Map))
	case reflect.Struct:
		visit(in, api)
		return "struct " + in.String()
	}
	return in.Kind().String() + " " + in.String()
}

func visit(in, api reflect.Type) {
	name := in.String()
	if _, isKnown := layouts[name]; isKnown || opaque[name] {
		return
	}
	layouts[name] = nil
	rows := [][3]string{}
	for i := 0; i < in.NumField(); i++ {
		field, key := in.Field(i), "?"
		var apiType reflect.Type
		if api != nil && api.Kind() == reflect.Struct {
			if found, ok := api.FieldByName(field.Name); ok {
				key = strings.Split(found.Tag.Get("json"), ",")[0]
				apiType = found.Type
			}
		}
		rows = append(rows, [3]string{field.Name, key, describe(field.Type, apiType)})
	}
	layouts[name] = rows
}

func main() {
	describe(reflect.TypeOf(core.Pod{}), reflect.TypeOf(v1.Pod{}))
	json.NewEncoder(os.Stdout).Encode(layouts)
}
`;

function go(dir, ...args) {
  const { status, stdout, stderr } = spawnSync("go", args, { cwd: dir, env, encoding: "utf8", maxBuffer: 64 << 20 });
  if (status !== 0) throw new Error(`go ${args[0]}: ${stderr}`);
  return stdout;
}

const dir = mkdtempSync(join(tmpdir(), "pod-layout-"));
try {
  writeFileSync(join(dir, "go.mod"), "module kubelet-ts.invalid/fetch\n");
  const { GoMod } = JSON.parse(go(dir, "mod", "download", "-json", `k8s.io/kubernetes@${VERSION}`));
  const upstream = readFileSync(GoMod, "utf8");
  const goVersion = /^go (\S+)$/m.exec(upstream)?.[1];
  const staging = new Set([...upstream.matchAll(/^\s+(k8s\.io\/\S+) v0\.0\.0$/gm)].map(([, name]) => name));
  const replaced = [...staging].map((name) => `replace ${name} => ${name} ${VERSION.replace("v1.", "v0.")}`);
  const lines = ["module kubelet-ts.invalid/layout", `go ${goVersion}`, `require k8s.io/kubernetes ${VERSION}`];
  writeFileSync(join(dir, "go.mod"), `${[...lines, ...replaced].join("\n")}\n`);
  mkdirSync(join(dir, "layout"));
  writeFileSync(join(dir, "layout/main.go"), PROGRAM);
  const layouts = JSON.parse(go(dir, "run", "./layout"));
  const rows = Object.entries(layouts)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, fields]) => `  ${JSON.stringify(name)}: ${JSON.stringify(fields)},`);
  const text = [
    `// Written by scripts/generate-pod-layout.mjs from the types of Kubernetes ${VERSION}; do not edit.`,
    "",
    "/** The fields of each Go type in a pod: name in Go, name in the API (empty: inline, `?`: elsewhere), Go type. */",
    "export const POD_LAYOUT: Readonly<Record<string, readonly (readonly [string, string, string])[]>> = {",
    ...rows,
    "};",
    "",
  ];
  writeFileSync(TARGET, text.join("\n"));
} finally {
  rmSync(dir, { recursive: true, force: true });
}
