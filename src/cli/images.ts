import { bool, option } from "../config/index.ts";
import type { ImageReport } from "../model/image-report.ts";
import { explained, findAgent, socketCandidates } from "./agent-client.ts";
import { command } from "./command.ts";
import { formatOption, formatted, helpOption, placeOf, placeOptions, print } from "./print.ts";
import { renderImages, renderRemovals } from "./render-images.ts";

export const images = command({
  name: "images",
  usage: "[--would-remove]",
  summary: "List the images of the node, and what garbage collection would do with them.",
  options: {
    wouldRemove: option(bool, {
      flag: "would-remove",
      default: false,
      topic: "General",
      help: "Only images that may be removed, in the order in which they go.",
    }),
    ...formatOption,
    ...placeOptions,
    ...helpOption,
  },
  words: { min: 0, max: 0 },
  async run(parsed, { out }, { signal }) {
    const agent = await findAgent(socketCandidates(placeOf(parsed)), { signal });
    const report = await agent.json<ImageReport>("/v1/images", { signal }).catch((error: unknown) => {
      throw explained(error);
    });
    const { output: format, wouldRemove } = parsed.values;
    const shown = wouldRemove ? { ...report, images: removable(report) } : report;
    if (format !== "text") await print(out, await formatted(shown, format), { signal });
    else await print(out, wouldRemove ? renderRemovals(shown, out) : renderImages(shown, out), { signal });
    return 0;
  },
});

function removable({ images: all }: ImageReport): ImageReport["images"] {
  return all.filter(({ remove, keep }) => remove !== undefined || keep === "spare");
}
