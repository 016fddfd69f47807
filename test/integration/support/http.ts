import { request } from "node:http";
import { SLOWNESS } from "./until.ts";

const LIMIT_MS = 20_000 * SLOWNESS;

export interface Answer {
  readonly status: number;
  readonly body: string;
}

/** One HTTP request; rejects when nobody answers for 20 s. */
export function http(url: string, method = "GET"): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const call = request(url, { method, agent: false, timeout: LIMIT_MS }, (response) => {
      let body = "";
      response.setEncoding("utf8").on("data", (text: string) => {
        body += text;
      });
      response.on("end", () => resolve({ status: response.statusCode ?? 0, body }));
      response.on("error", reject);
    });
    call.on("timeout", () => call.destroy(new Error(`no answer within ${LIMIT_MS} ms`)));
    call.on("error", reject);
    call.end();
  });
}
