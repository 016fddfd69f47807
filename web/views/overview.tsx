import { Chart } from "../chart.tsx";
import { bytes, count, percent, perSecond } from "../format.ts";
import { Meter, Section, State, Title } from "../parts.tsx";
import { href } from "../router.ts";
import { events, hello, may, node, nodeSeries, pods, toneOf, troubled } from "../store.ts";
import { stepWords } from "../words.ts";
import { EventTable } from "./events.tsx";
import { PullList, pullsOf } from "./images.tsx";

/** The node at a glance. */
export function Overview() {
  return (
    <>
      <Title>Node {hello.value?.node}</Title>
      {may("pods") && <Counts />}
      {may("usage") && <NodeCharts />}
      {may("pods") && <Attention />}
      {may("pods") && pullsOf([...pods.value.values()]).length > 0 && (
        <Section title="Image pulls">
          <PullList />
        </Section>
      )}
      {may("pods") && (
        <Section title="Latest events" aside={<a href={href("events")}>All events</a>}>
          <EventTable events={events.value.slice(0, 8)} />
        </Section>
      )}
    </>
  );
}

function Counts() {
  const all = [...pods.value.values()];
  const of = (tone: ReturnType<typeof toneOf>): number => all.filter((pod) => toneOf(pod) === tone).length;
  const containers = all.reduce((sum, pod) => sum + pod.totalContainers, 0);
  const restarts = all.reduce((sum, pod) => sum + pod.restarts, 0);
  const tiles = [
    { label: "Pods", value: all.length, tone: "" },
    { label: "Running", value: of("good"), tone: "good" },
    { label: "In progress", value: of("busy"), tone: of("busy") > 0 ? "busy" : "" },
    { label: "Need attention", value: of("bad"), tone: of("bad") > 0 ? "bad" : "" },
    { label: "Containers", value: containers, tone: "" },
    { label: "Restarts", value: restarts, tone: "" },
  ];
  return (
    <ul class="tiles" aria-label="Pods by state">
      {tiles.map(({ label, value, tone }) => (
        <li key={label} class={`card tile ${tone}`}>
          <strong>{value}</strong> {label}
        </li>
      ))}
    </ul>
  );
}

function NodeCharts() {
  const { value } = node;
  if (value === undefined) return <p class="muted">Measuring …</p>;
  const { line, cores, memoryBytes } = value;
  const [received = 0, sent = 0] = [nodeSeries.values[2]?.at(-1), nodeSeries.values[3]?.at(-1)];
  const [read = 0, written = 0] = [nodeSeries.values[7]?.at(-1), nodeSeries.values[8]?.at(-1)];
  const cpu = (line.nanoCores ?? 0) / 1e9;
  const { pressure } = line;
  const stall = (of: number | undefined): string => (of === undefined ? "–" : `${of.toFixed(1)} %`);
  return (
    <div class="charts">
      <Chart
        title="CPU"
        value={`${cpu.toFixed(2)} of ${cores} cores, ${percent(cpu, cores)}`}
        series={nodeSeries}
        lines={[{ label: "CPU", index: 0, color: "series1", fill: true }]}
        format={(cores_) => cores_.toFixed(1)}
        max={cores}
        least={0}
        version={line.at}
      />
      <Chart
        title="Memory"
        value={`${bytes(line.workingSetBytes)} of ${bytes(memoryBytes)}, ${percent(line.workingSetBytes, memoryBytes)}`}
        series={nodeSeries}
        lines={[{ label: "Memory", index: 1, color: "series2", fill: true }]}
        format={bytes}
        binary
        least={0}
        max={memoryBytes}
        version={line.at}
      />
      <Chart
        title="Network"
        value={`${perSecond(received)} in, ${perSecond(sent)} out`}
        series={nodeSeries}
        lines={[
          { label: "received", index: 2, color: "series1" },
          { label: "sent", index: 3, color: "series3" },
        ]}
        format={bytes}
        binary
        least={4096}
        version={line.at}
      />
      {line.diskTraffic !== undefined && (
        <Chart
          title="Disk"
          value={`${perSecond(read)} read, ${perSecond(written)} written`}
          series={nodeSeries}
          lines={[
            { label: "read", index: 7, color: "series2" },
            { label: "written", index: 8, color: "series4" },
          ]}
          format={bytes}
          binary
          least={4096}
          version={line.at}
        />
      )}
      {pressure !== undefined && (
        <Chart
          title="Pressure"
          value={[pressure.cpu, pressure.memory, pressure.io].map(stall).join(" · ")}
          series={nodeSeries}
          lines={[
            { label: "CPU", index: 4, color: "series1" },
            { label: "memory", index: 5, color: "series2" },
            { label: "IO", index: 6, color: "series3" },
          ]}
          format={(share) => `${Math.round(share)} %`}
          least={10}
          version={line.at}
        />
      )}
      <Space />
    </div>
  );
}

function Space() {
  const { value } = node;
  if (value === undefined) return null;
  const { line, memoryBytes } = value;
  const { disk, imageDisk, swap } = line;
  const used = (of: { capacityBytes: number; availableBytes: number }) => of.capacityBytes - of.availableBytes;
  const words = (part: number, whole: number) => `${bytes(part)} of ${bytes(whole)}, ${percent(part, whole)}`;
  return (
    <Section title="Space">
      <Meter
        label="Memory"
        part={line.workingSetBytes}
        whole={memoryBytes}
        words={words(line.workingSetBytes, memoryBytes)}
      />
      {disk !== undefined && (
        <Meter
          label="Disk"
          part={used(disk)}
          whole={disk.capacityBytes}
          words={words(used(disk), disk.capacityBytes)}
        />
      )}
      {imageDisk !== undefined && (
        <Meter
          label="Images"
          part={used(imageDisk)}
          whole={imageDisk.capacityBytes}
          words={words(used(imageDisk), imageDisk.capacityBytes)}
        />
      )}
      {swap.totalBytes > 0 && (
        <Meter
          label="Swap"
          part={swap.totalBytes - swap.freeBytes}
          whole={swap.totalBytes}
          words={words(swap.totalBytes - swap.freeBytes, swap.totalBytes)}
        />
      )}
      {line.tasks !== undefined && <p class="muted">{count(line.tasks, "task")} on the node</p>}
    </Section>
  );
}

function Attention() {
  const list = troubled.value;
  return (
    <Section title="Needs attention">
      {list.length === 0 && <p class="muted">Nothing: no pod has a problem.</p>}
      <ul class="plain">
        {list.slice(0, 8).map((pod) => (
          <li key={pod.uid}>
            <a href={href("pods", pod.uid)}>{pod.name}</a> <span class="muted small">{pod.namespace}</span>{" "}
            <State pod={pod} />
            {pod.step !== undefined && <div class="muted small">{stepWords(pod.step)}</div>}
          </li>
        ))}
      </ul>
      {list.length > 8 && (
        <p>
          <a href={href("pods")}>and {list.length - 8} more</a>
        </p>
      )}
    </Section>
  );
}
