// Clients of the local API in a process of their own for `local-api-objects.ts`: they read bytes and parse nothing, so that
// the server is what is measured.
import { connect, type OnReadOpts } from "node:net";

/** What the process is asked to do. */
export type ClientOrder =
  | { readonly watch: string; readonly socket: string; readonly count: number }
  | { readonly list: string; readonly socket: string; readonly accept: string };

/** What it answers: that all watches have begun, when an event came to each, or how a list went. In milliseconds. */
export type ClientReport =
  | { readonly isWatching: true }
  | { readonly arrivals: readonly number[] }
  | { readonly took: number; readonly bytes: number };

const buffer = Buffer.alloc(256 * 1024);

/** The clock that all processes of the machine share. */
export function sharedNow(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

function report(answer: ClientReport): void {
  process.send?.(answer);
}

function request(path: string, accept: string): string {
  return `GET ${path} HTTP/1.1\r\nHost: localhost\r\nAccept: ${accept}\r\nConnection: close\r\n\r\n`;
}

/** Opens a connection whose bytes are counted and forgotten. */
function read(socket: string, text: string, { onBytes }: { onBytes(count: number): void }): Promise<void> {
  const onread: OnReadOpts = {
    buffer,
    callback: (count) => {
      onBytes(count);
      return true;
    },
  };
  const connection = connect({ path: socket, onread });
  connection.write(text);
  return new Promise((resolve, reject) => connection.on("error", reject).on("close", () => resolve()));
}

/** True if the bytes end an event: a line of JSON, and its chunk. */
function isEnd(count: number): boolean {
  return buffer.toString("latin1", count - 4, count) === "}\n\r\n";
}

function watch({ watch: path, socket, count }: Extract<ClientOrder, { watch: string }>): void {
  let heads = 0;
  let arrivals: number[] = [];
  const opened = (): void => {
    if (++heads === count) report({ isWatching: true });
  };
  const arrived = (bytes: number): void => {
    if (!isEnd(bytes) || arrivals.push(sharedNow()) < count) return;
    report({ arrivals });
    arrivals = [];
  };
  for (let index = 0; index < count; index++) {
    let isOpen = false;
    const onBytes = (bytes: number): void => {
      if (isOpen) return arrived(bytes);
      isOpen = true;
      opened();
    };
    void read(socket, request(path, "application/json"), { onBytes }).catch(() => undefined);
  }
}

async function list({ list: path, socket, accept }: Extract<ClientOrder, { list: string }>): Promise<void> {
  let bytes = 0;
  const at = sharedNow();
  await read(socket, request(path, accept), {
    onBytes: (count) => {
      bytes += count;
    },
  });
  report({ took: sharedNow() - at, bytes });
}

process.on("message", (order: ClientOrder) => {
  if ("watch" in order) watch(order);
  else void list(order);
});
