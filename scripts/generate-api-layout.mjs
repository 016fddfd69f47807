// `generate-api-layout.mjs`: writes scripts/schemas/layout.json and protobuf.json from the Go types of Kubernetes'
// published module. An API server stores what its Go types can hold: a zero value of most fields is the same as its
// absence, others are always there. The OpenAPI schemas tell neither which, nor the numbers of fields in protobuf. Needs Go;
// run it when the version of Kubernetes changes, before `npm run generate`.
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const VERSION = process.env.KUBE_API_VERSION || "v0.36.3";
const TARGETS = { layout: "schemas/layout.json", protobuf: "schemas/protobuf.json" };
const env = { ...process.env, CGO_ENABLED: "0", GOWORK: "off", GOFLAGS: "-mod=mod -buildvcs=false" };

/** Kinds by package, as in generate-types.mjs; what they reach is found by reflection. */
const KINDS = {
  "core/v1": [
    ...["Pod", "Node", "ConfigMap", "Secret", "Event", "Service", "ServiceAccount", "PersistentVolume"],
    ...["PersistentVolumeClaim", "Namespace", "Endpoints", "Binding"],
  ],
  "apps/v1": ["Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "ControllerRevision"],
  "batch/v1": ["Job", "CronJob"],
  "autoscaling/v1": ["Scale"],
  "policy/v1": ["Eviction"],
  "coordination/v1": ["Lease"],
  "discovery/v1": ["EndpointSlice"],
  "events/v1": ["Event"],
  "node/v1": ["RuntimeClass"],
  "scheduling/v1": ["PriorityClass"],
  "storage/v1": ["StorageClass", "CSINode", "CSIDriver", "VolumeAttachment"],
  "authentication/v1": ["TokenRequest", "TokenReview", "SelfSubjectReview"],
  "authorization/v1": [
    ...["SubjectAccessReview", "LocalSubjectAccessReview", "SelfSubjectAccessReview", "SelfSubjectRulesReview"],
  ],
};

const alias = (path) => path.replaceAll("/", "");
const PROGRAM = `package main

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"

${Object.keys(KINDS)
  .map((path) => `	${alias(path)} "k8s.io/api/${path}"`)
  .join("\n")}
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Type by its name in OpenAPI: field → "omit" (a zero value is absent), "keep" (always there), "omitzero" (a struct that
// is left out while it is empty).
var layout = map[string]map[string]string{}

// Type by its name in OpenAPI: number → field in JSON, or for what JSON has inline the numbers in it.
var protobuf = map[string]map[string]any{}
var opaque = map[string]bool{"Quantity": true, "IntOrString": true, "Time": true, "MicroTime": true, "FieldsV1": true, "RawExtension": true}

func nameOf(t reflect.Type) string {
	path := strings.TrimPrefix(t.PkgPath(), "k8s.io/")
	return "io.k8s." + strings.ReplaceAll(path, "/", ".") + "." + t.Name()
}

func visit(t reflect.Type) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || opaque[t.Name()] {
		return
	}
	name := nameOf(t)
	if _, known := layout[name]; known {
		return
	}
	layout[name] = map[string]string{}
	fields(t, layout[name])
	protobuf[name] = numbers(t)
}

func numbers(t reflect.Type) map[string]any {
	found := map[string]any{}
	for i := 0; i < t.NumField(); i++ {
		field := t.Field(i)
		tag := strings.Split(field.Tag.Get("protobuf"), ",")
		if len(tag) < 2 {
			continue
		}
		if name := strings.Split(field.Tag.Get("json"), ",")[0]; name != "" {
			found[tag[1]] = name
		} else {
			found[tag[1]] = numbers(field.Type)
		}
	}
	return found
}

func fields(t reflect.Type, into map[string]string) {
	for i := 0; i < t.NumField(); i++ {
		field := t.Field(i)
		parts := strings.Split(field.Tag.Get("json"), ",")
		if parts[0] == "" {
			if field.Anonymous {
				fields(field.Type, into)
			}
			continue
		}
		options := strings.Join(parts[1:], ",")
		isOmitted := strings.Contains(options, "omitempty")
		isZeroOmitted := strings.Contains(options, "omitzero")
		word := ""
		switch field.Type.Kind() {
		case reflect.Pointer, reflect.Interface:
		case reflect.Struct:
			word = "keep"
			if isZeroOmitted {
				word = "omitzero"
			}
		case reflect.Slice, reflect.Map:
			if !isOmitted {
				word = "keep"
			}
		default:
			word = "keep"
			if isOmitted || isZeroOmitted {
				word = "omit"
			}
		}
		if word != "" {
			into[parts[0]] = word
		}
		visit(field.Type)
	}
}

func main() {
	for _, object := range []any{
${Object.entries(KINDS)
  .flatMap(([path, kinds]) => kinds.map((kind) => `		${alias(path)}.${kind}{},`))
  .join("\n")}
		metav1.DeleteOptions{},
	} {
		visit(reflect.TypeOf(object))
	}
	out := json.NewEncoder(os.Stdout)
	out.SetIndent("", " ")
	out.Encode(map[string]any{"layout": layout, "protobuf": protobuf})
}
`;

function go(dir, ...args) {
  const { status, stdout, stderr } = spawnSync("go", args, { cwd: dir, env, encoding: "utf8", maxBuffer: 64 << 20 });
  if (status !== 0) throw new Error(`go ${args[0]}: ${stderr}`);
  return stdout;
}

const dir = mkdtempSync(join(tmpdir(), "api-layout-"));
try {
  writeFileSync(join(dir, "go.mod"), `module kubelet-ts.invalid/layout\n\nrequire k8s.io/api ${VERSION}\n`);
  writeFileSync(join(dir, "main.go"), PROGRAM);
  go(dir, "mod", "tidy");
  const made = JSON.parse(go(dir, "run", "."));
  for (const [name, target] of Object.entries(TARGETS)) {
    writeFileSync(join(import.meta.dirname, target), `${JSON.stringify(made[name], null, 1)}\n`);
  }
} finally {
  rmSync(dir, { recursive: true, force: true });
}
