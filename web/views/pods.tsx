import { useState } from "preact/hooks";
import type { PodUsageLine, UsageLine } from "../../src/model/node-usage.ts";
import type { PodSummary } from "../../src/model/step.ts";
import { bytes, count, millicores, perSecond } from "../format.ts";
import { Age, Marked, Sparkline, State, Table, Title } from "../parts.tsx";
import { href } from "../router.ts";
import { barsOf, may, pods, podUsage, trafficOf } from "../store.ts";

type Column = "name" | "state" | "restarts" | "cpu" | "memory" | "age";

interface ColumnHead {
  readonly key: Column;
  readonly title: string;
  /** Only for who may see usage. */
  readonly usage?: boolean;
  readonly isNumber?: boolean;
}

const COLUMNS: readonly ColumnHead[] = [
  { key: "name", title: "Pod" },
  { key: "state", title: "State" },
  { key: "restarts", title: "Restarts", isNumber: true },
  { key: "cpu", title: "CPU", usage: true, isNumber: true },
  { key: "memory", title: "Memory", usage: true, isNumber: true },
  { key: "age", title: "Age", isNumber: true },
];
/** `web-9` before `web-10`. */
const NAMES = new Intl.Collator("en", { numeric: true });

/** All pods, with their usage. */
export function Pods() {
  const [search, setSearch] = useState("");
  const [sort, setSort] = useState<Column>("name");
  const [containers, setContainers] = useState(false);
  const usage = podUsage.value;
  const wanted = search.toLowerCase();
  const shown = [...pods.value.values()]
    .filter((pod) => `${pod.namespace}/${pod.name} ${pod.state} ${pod.ip}`.toLowerCase().includes(wanted))
    .sort(order(sort, usage));
  const showsUsage = may("usage");
  return (
    <>
      <Title>Pods</Title>
      <div class="tools">
        <label>
          Search <input type="search" value={search} onInput={(event) => setSearch(event.currentTarget.value)} />
        </label>
        {showsUsage && (
          <label class="check">
            <input
              type="checkbox"
              checked={containers}
              onChange={(event) => setContainers(event.currentTarget.checked)}
            />{" "}
            containers
          </label>
        )}
        <span class="muted" role="status">
          {shown.length} of {pods.value.size} pods
        </span>
      </div>
      <div class="card">
        <Table label="Pods" kind="pods">
          <thead>
            <tr>
              {COLUMNS.filter((column) => showsUsage || column.usage !== true).map(({ key, title, isNumber }) => (
                <th
                  key={key}
                  scope="col"
                  class={isNumber === true ? "number" : ""}
                  aria-sort={sort === key ? (key === "name" || key === "state" ? "ascending" : "descending") : "none"}
                >
                  <button type="button" class="sort" onClick={() => setSort(key)}>
                    {title} <span aria-hidden="true">{sort === key ? "▾" : ""}</span>
                  </button>
                </th>
              ))}
              {showsUsage && (
                <th scope="col" class="number">
                  Network in, out
                </th>
              )}
            </tr>
          </thead>
          <tbody>
            {shown.flatMap((pod) => [
              <Row key={pod.uid} pod={pod} usage={usage.get(pod.uid)} search={search} />,
              ...(containers ? (usage.get(pod.uid)?.containers ?? []) : []).map((one) => (
                <ContainerRow key={`${pod.uid}/${one.name}`} name={one.name} line={one} />
              )),
            ])}
          </tbody>
        </Table>
        {shown.length === 0 && (
          <p class="muted empty">{search === "" ? "No pods on this node." : `No pod matches “${search}”.`}</p>
        )}
      </div>
    </>
  );
}

function order(sort: Column, usage: ReadonlyMap<string, PodUsageLine>): (a: PodSummary, b: PodSummary) => number {
  const byName = (a: PodSummary, b: PodSummary): number =>
    NAMES.compare(a.namespace, b.namespace) || NAMES.compare(a.name, b.name);
  const value = (pod: PodSummary): number | string => {
    switch (sort) {
      case "name":
        return 0;
      case "state":
        return pod.state;
      case "restarts":
        return -pod.restarts;
      case "cpu":
        return -(usage.get(pod.uid)?.nanoCores ?? 0);
      case "memory":
        return -(usage.get(pod.uid)?.workingSetBytes ?? 0);
      case "age":
        return -(pod.startedAt ?? pod.seenAt);
    }
  };
  return (a, b) => {
    const [one, other] = [value(a), value(b)];
    return one < other ? -1 : one > other ? 1 : byName(a, b);
  };
}

function Row({ pod, usage, search }: RowProps) {
  const flow = trafficOf(pod.uid);
  return (
    <tr>
      <th scope="row">
        <a href={href("pods", pod.uid)}>
          <Marked text={pod.name} search={search} />
        </a>
        <div class="muted small">
          {pod.namespace}
          {pod.ip !== "" && ` · ${pod.ip}`}
        </div>
      </th>
      <td>
        <State pod={pod} />
        <div class="muted small">
          {pod.readyContainers}/{pod.totalContainers} ready
        </div>
      </td>
      <td data-label="Restarts" class="number">
        {pod.restarts}
      </td>
      {may("usage") && <UsageCells line={usage} bars={barsOf(pod.uid)} />}
      <td data-label="Age" class="number">
        <Age at={pod.startedAt ?? pod.seenAt} />
      </td>
      {may("usage") && (
        <td data-label="Network" class="number">
          {flow === undefined ? <span class="muted">–</span> : `${perSecond(flow.received)}, ${perSecond(flow.sent)}`}
        </td>
      )}
    </tr>
  );
}

interface RowProps {
  readonly pod: PodSummary;
  readonly usage: PodUsageLine | undefined;
  readonly search: string;
}

function ContainerRow({ name, line }: { readonly name: string; readonly line: UsageLine }) {
  return (
    <tr class="container">
      <th scope="row">{name}</th>
      <td />
      <td />
      <UsageCells line={line} />
      <td />
      <td class="number muted">
        {line.tasks !== undefined && count(line.tasks, "task")}
        {line.pressure?.cpu !== undefined && `, stalled ${line.pressure.cpu.toFixed(1)} %`}
      </td>
    </tr>
  );
}

function UsageCells({ line, bars }: { readonly line: UsageLine | undefined; readonly bars?: readonly number[] }) {
  const limit = line?.memoryLimitBytes;
  return (
    <>
      <td data-label="CPU" class="cpu number">
        {bars !== undefined && <Sparkline values={bars} label="CPU usage of the last samples" />}{" "}
        <span class="amount">{millicores(line?.nanoCores)}</span>
      </td>
      <td data-label="Memory" class="number">
        {line === undefined ? "–" : bytes(line.workingSetBytes)}
        {limit !== undefined && <span class="muted"> of {bytes(limit)}</span>}
      </td>
    </>
  );
}
