import { request } from "node:http";

export interface Answer {
  readonly status: number;
  readonly body: string;
}

/** One HTTP request; rejects when nobody answers within 5 s. */
export function http(url: string, method = "GET"): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const call = request(url, { method, agent: false, timeout: 5000 }, (response) => {
      let body = "";
      response.setEncoding("utf8").on("data", (text: string) => {
        body += text;
      });
      response.on("end", () => resolve({ status: response.statusCode ?? 0, body }));
      response.on("error", reject);
    });
    call.on("timeout", () => call.destroy(new Error("no answer within 5 s")));
    call.on("error", reject);
    call.end();
  });
}
