import type { Pod, PodStatus } from "../../../src/model/generated/types.ts";
import { http } from "./http.ts";
import type { Agent, Site } from "./site.ts";
import { until } from "./until.ts";

/** The status of a pod by the name in its manifest, as the agent's read-only port has it. */
export async function statusOf(agent: Agent, name: string): Promise<PodStatus | undefined> {
  const { items } = JSON.parse((await http(`http://127.0.0.1:${agent.readOnlyPort}/pods`)).body);
  return items.find((one: Pod) => one.metadata.name?.startsWith(`${name}-`))?.status;
}

/** Waits until the log of a pod (`web`), or of one of its containers (`web/app`), has these words, and gives all of it. */
export async function said(site: Site, place: string, words: RegExp): Promise<string> {
  const [name = "", container] = place.split("/");
  let last = "";
  const look = async (): Promise<string | undefined> => {
    const { code, stdout, stderr } = await site.run(
      "logs",
      name,
      ...(container === undefined ? [] : ["-c", container]),
    );
    last = code === 0 ? stdout : stderr;
    return code === 0 && words.test(stdout) ? stdout : undefined;
  };
  return until(`${place} says ${words}`, look, { seen: () => last });
}
