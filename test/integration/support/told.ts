import { messageOf } from "../../../src/lib/errors.ts";
import type { Pod, PodStatus } from "../../../src/model/generated/types.ts";
import { http } from "./http.ts";
import type { Agent, Site } from "./site.ts";
import { until } from "./until.ts";

/** The status of a pod by the name in its manifest, as the agent's read-only port has it. */
export async function statusOf(agent: Agent, name: string): Promise<PodStatus | undefined> {
  const { items } = JSON.parse((await http(`http://127.0.0.1:${agent.readOnlyPort}/pods`)).body);
  return items.find((one: Pod) => one.metadata.name?.startsWith(`${name}-`))?.status;
}

/**
 * Waits until the log of a pod (`web`), or of one of its containers (`web/app`), has these words, and gives all of it. Asks
 * the agent itself: a command takes seconds in the emulated machine.
 */
export async function said(site: Site, place: string, words: RegExp): Promise<string> {
  const [name = "", container] = place.split("/");
  const path = `/v1/logs/${name}${container === undefined ? "" : `?container=${container}`}`;
  let last = "";
  const look = async (): Promise<string | undefined> => {
    try {
      last = await site.text(path);
    } catch (error) {
      last = messageOf(error);
      return undefined;
    }
    return words.test(last) ? last : undefined;
  };
  return until(`${place} says ${words}`, look, { seen: () => last });
}
