import type { ImageReport, ReportedImage } from "../../src/model/image-report.ts";
import type { PodStep, PodSummary } from "../../src/model/step.ts";
import { ago, bytes, percent } from "../format.ts";
import { Meter, Section, Table, Title } from "../parts.tsx";
import { href } from "../router.ts";
import { may, pods } from "../store.ts";
import { useAnswer } from "../use-answer.ts";
import { progressWords } from "../words.ts";

/** The pods that are pulling an image now. */
export function pullsOf(all: readonly PodSummary[]): readonly { readonly pod: PodSummary; readonly step: PodStep }[] {
  return all.flatMap((pod) => {
    const { step } = pod;
    return step?.step === "pull" && step.until === undefined ? [{ pod, step }] : [];
  });
}

/** Running pulls with their progress. */
export function PullList() {
  const pulls = pullsOf([...pods.value.values()]);
  if (pulls.length === 0) return <p class="muted">No image is being pulled.</p>;
  return (
    <ul class="plain">
      {pulls.map(({ pod, step }) => (
        <li key={pod.uid}>
          <a href={href("pods", pod.uid)}>{pod.name}</a> <span class="muted">{step.detail}</span>
          <div>
            <progress
              aria-label={`Pull for ${pod.name}`}
              max={step.progress?.totalBytes || undefined}
              value={step.progress?.totalBytes ? step.progress.doneBytes : undefined}
            />{" "}
            <span class="small">{step.progress === undefined ? "waiting" : progressWords(step.progress)}</span>
          </div>
        </li>
      ))}
    </ul>
  );
}

const KEPT: Readonly<Record<NonNullable<ReportedImage["keep"]>, string>> = {
  inUse: "in use",
  wanted: "wanted by a pod",
  pulling: "being pulled",
  pinned: "pinned by the runtime",
  sandbox: "sandboxes are made from it",
  local: "not from a registry",
  young: "too new to be removed",
  spare: "unused; removed next if space is needed",
};

/** The images of the node, and what garbage collection would do with them. */
export function Images() {
  const { answer, problem } = useAnswer<ImageReport>(may("images") ? "images" : undefined, 10_000);
  return (
    <>
      <Title>Images</Title>
      {may("pods") && (
        <Section title="Pulls">
          <PullList />
        </Section>
      )}
      {problem !== undefined && <p role="alert">{problem}</p>}
      {answer !== undefined && <ImageSections report={answer} />}
    </>
  );
}

function ImageSections({ report }: { readonly report: ImageReport }) {
  const { imageFilesystem, collected, images, highThresholdPercent, lowThresholdPercent } = report;
  const used = imageFilesystem && imageFilesystem.capacityBytes - imageFilesystem.availableBytes;
  return (
    <>
      {imageFilesystem !== undefined && used !== undefined && (
        <Section title="Image filesystem">
          <Meter
            label={imageFilesystem.mountpoint}
            part={used}
            whole={imageFilesystem.capacityBytes}
            words={`${bytes(used)} of ${bytes(imageFilesystem.capacityBytes)}, ${percent(used, imageFilesystem.capacityBytes)}`}
          />
          <p class="muted small">
            Unused images are removed above {highThresholdPercent} % until {lowThresholdPercent} % is reached. Removed
            so far: {collected.images} images, {bytes(collected.bytes)}.
          </p>
        </Section>
      )}
      <Section title={`${images.length} images`}>
        <Table label="Images">
          <thead>
            <tr>
              <th scope="col">Name</th>
              <th scope="col">Size</th>
              <th scope="col">Unused for</th>
              <th scope="col">Garbage collection</th>
            </tr>
          </thead>
          <tbody>
            {images.map((image) => (
              <tr key={`${image.id}${image.runtimeHandler ?? ""}`}>
                <th scope="row" class="wrap">
                  {image.names.length === 0 ? image.id : image.names.map((name) => <div key={name}>{name}</div>)}
                </th>
                <td data-label="Size">{bytes(image.sizeBytes)}</td>
                <td data-label="Unused for">{image.unusedMs === undefined ? "–" : ago(image.unusedMs)}</td>
                <td class="wrap">
                  {image.remove !== undefined && <span class="badge busy">removes it ({image.remove})</span>}
                  {image.keep !== undefined && KEPT[image.keep]}
                  {image.by !== undefined && <div class="muted small">{image.by}</div>}
                </td>
              </tr>
            ))}
          </tbody>
        </Table>
      </Section>
    </>
  );
}
