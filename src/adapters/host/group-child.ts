import { messageOf } from "../../lib/errors.ts";
import { changeGroup, type GroupChange } from "./group.ts";
import { chooseTreeAccess } from "./tree-access.ts";

// The whole program of the child process that gives a volume to a group; `remote-group.ts` starts it and may kill it.
const { path, ...change } = JSON.parse(process.argv[2] ?? "{}") as GroupChange & { readonly path: string }; // reason: written by the parent
const send = (message: GroupMessage): void => void process.send?.(message);

/** What the child tells its parent. */
export type GroupMessage = { readonly entries: number } | { readonly isDone: true } | { readonly error: string };

async function main(): Promise<void> {
  try {
    const onProgress = (entries: number): void => send({ entries });
    await changeGroup({ access: await chooseTreeAccess() }, path, { ...change, onProgress });
    send({ isDone: true });
  } catch (error) {
    send({ error: messageOf(error) });
  } finally {
    process.disconnect();
  }
}

void main();
