import { bareRequest } from "../../src/adapters/net/http-route.ts";
import type { ApiServer } from "../../src/apiserver/index.ts";

/** What a test asks with. */
export interface AskedWith {
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly groups?: readonly string[];
}

/** An answer of the local API; a test knows the form of what it asked for. */
export interface Answered<T> {
  readonly status: number;
  readonly value: T;
}

/** The parts of a `Status` that tests look at. */
export interface StatusBody {
  readonly reason?: string;
  readonly message?: string;
}

/** Asks a local API over its HTTP handler, as an administrator unless a test gives other groups. */
export function apiRequests(server: ApiServer) {
  return async <T = StatusBody>(
    method: string,
    path: string,
    { body, headers = {}, groups = ["system:masters"] }: AskedWith = {},
  ): Promise<Answered<T>> => {
    const text = body === undefined ? "" : JSON.stringify(body);
    const request = bareRequest(method, path, { headers, readBody: async () => Buffer.from(text) });
    const answer = await server.handle(request, { name: "tester", groups });
    return { status: answer.status, value: JSON.parse(String(answer.body)) as T };
  };
}
