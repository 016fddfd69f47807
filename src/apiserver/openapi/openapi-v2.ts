import { BinaryWriter } from "@bufbuild/protobuf/wire";
import { jsonAnswer, type RouteAnswer } from "../../adapters/net/http-route.ts";
import { gitVersion } from "../../lib/version.ts";

/** Asked for with an `@` in place of the second dot, which is no media type for Go. */
const PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
const SWAGGER = "2.0";
const TITLE = "Kubernetes";
/** Numbers of fields in the messages `Document` and `Info` of OpenAPI v2. */
const FIELD = { swagger: 1, info: 2, paths: 8, definitions: 9, title: 1, version: 2 };
const BYTES = 2;

/**
 * The document of OpenAPI v2, without definitions: kubectl asks for it before it validates a `List` or an unknown kind
 * itself, and leaves what it finds no schema for to the server. Everything else is in v3.
 */
export function openApiV2(accept = ""): RouteAnswer {
  if (accept.includes("proto-openapi.spec.v2")) return { status: 200, type: PROTOBUF, body: encoded() };
  return jsonAnswer(200, {
    swagger: SWAGGER,
    info: { title: TITLE, version: gitVersion },
    paths: {},
    definitions: {},
  });
}

function encoded(): Uint8Array {
  const info = new BinaryWriter().tag(FIELD.title, BYTES).string(TITLE).tag(FIELD.version, BYTES).string(gitVersion);
  return new BinaryWriter()
    .tag(FIELD.swagger, BYTES)
    .string(SWAGGER)
    .tag(FIELD.info, BYTES)
    .bytes(info.finish())
    .tag(FIELD.paths, BYTES)
    .bytes(new Uint8Array())
    .tag(FIELD.definitions, BYTES)
    .bytes(new Uint8Array())
    .finish();
}
