import { useEffect, useState } from "preact/hooks";
import type { UsagePressure } from "../../src/model/node-usage.ts";
import type { ContainerDetails, PodLine } from "../../src/model/page-lines.ts";
import type { PodExplanation } from "../../src/model/step.ts";
import { ago, bytes, count, millicores } from "../format.ts";
import { Age, Section, State, Table, Title } from "../parts.tsx";
import { href } from "../router.ts";
import { may, now } from "../store.ts";
import { follow } from "../stream.ts";
import { stepWords } from "../words.ts";
import { EventTable } from "./events.tsx";
import { Logs } from "./logs.tsx";
import { PodCharts, PodHistory } from "./pod-charts.tsx";
import { Shell } from "./shell.tsx";
import { Waterfall } from "./waterfall.tsx";

interface PodState extends Omit<PodLine, "hello"> {
  readonly problem?: string;
}

/** One pod: what it is doing and why, its usage, logs, and a terminal. */
export function PodView({ uid, tab, container }: PodViewProps) {
  const [state, setState] = useState<PodState>({});
  const [history, setHistory] = useState(() => new PodHistory());
  useEffect(() => {
    setState({});
    const own = new PodHistory();
    setHistory(own);
    return follow<PodLine>(`pods/${encodeURIComponent(uid)}`, {
      line: ({ hello: _hello, ...line }) => {
        if (line.usage !== undefined) own.add(line.usage, line.details ?? []);
        setState((before) => ({ ...before, ...line }));
      },
      state: (kind, message) => {
        if (kind === "refused") setState({ problem: message ?? "not available" });
      },
    });
  }, [uid]);
  const { pod, problem, gone } = state;
  if (problem !== undefined || pod === undefined) {
    return (
      <>
        <Title>Pod</Title>
        <p role={problem === undefined ? "status" : "alert"}>{problem ?? "Loading …"}</p>
        <a href={href("pods")}>All pods</a>
      </>
    );
  }
  const tabs = [
    { key: "", title: "Overview", isOpen: true },
    { key: "logs", title: "Logs", isOpen: may("logs") },
    { key: "terminal", title: "Terminal", isOpen: may("exec") },
    { key: "events", title: "Events", isOpen: true },
  ];
  const chosen = container ?? pod.containers.find(({ kind }) => kind === "regular")?.name ?? "";
  return (
    <>
      <p class="crumbs">
        <a href={href("pods")}>Pods</a> / {pod.namespace}
      </p>
      <Title>{pod.name}</Title>
      <p class="facts-line">
        <State pod={pod} />
        <span>
          {pod.readyContainers} of {pod.totalContainers} ready
        </span>
        <span>{count(pod.restarts, "restart")}</span>
        <span>{pod.ip === "" ? "no IP" : pod.ip}</span>
        <span>
          from {pod.source}, seen <Age at={pod.seenAt} /> ago
        </span>
      </p>
      {gone === true && <p role="alert">The pod was removed.</p>}
      <nav class="tabs" aria-label="Pod">
        {tabs
          .filter(({ isOpen }) => isOpen)
          .map(({ key, title }) => (
            <a
              key={key}
              href={href("pods", uid, ...(key === "" ? [] : [key]))}
              aria-current={tab === key ? "page" : undefined}
            >
              {title}
            </a>
          ))}
      </nav>
      {tab === "" && <PodOverview state={state} pod={pod} history={history} />}
      {tab === "logs" && <Logs uid={uid} pod={pod} container={chosen} />}
      {tab === "terminal" && <Shell uid={uid} pod={pod} container={chosen} />}
      {tab === "events" && (
        <div class="card">
          <EventTable events={[...pod.events].reverse()} withPod={false} />
        </div>
      )}
    </>
  );
}

interface PodViewProps {
  readonly uid: string;
  readonly tab: string;
  readonly container: string | undefined;
}

function PodOverview({ pod, state, history }: OverviewProps) {
  const { step, next } = pod;
  return (
    <>
      {(step !== undefined || next !== undefined || pod.errors.length > 0 || pod.warnings.length > 0) && (
        <Section title="Now">
          {step !== undefined && (
            <p>
              {stepWords(step)}{" "}
              <span class="muted">
                {step.until === undefined
                  ? `for ${ago(now.value - step.since)}`
                  : `${step.outcome ?? "done"} after ${ago(step.until - step.since)}`}
              </span>
            </p>
          )}
          {next !== undefined && (
            <p>
              Next try {next.at > now.value ? `in ${ago(next.at - now.value)}` : "now"}
              {next.why !== "" && `: ${next.why}`}
            </p>
          )}
          {pod.errors.length > 0 && (
            <ul class="errors">
              {pod.errors.map((error) => (
                <li key={`${error.step}${error.container}${error.message}`}>
                  <strong>
                    {error.step} {error.container}
                  </strong>{" "}
                  <span class="muted">
                    {error.count > 1 && `${error.count} times, `}last <Age at={error.last} /> ago
                  </span>
                  <div class="wrap">{error.message}</div>
                </li>
              ))}
            </ul>
          )}
          {pod.warnings.map((warning) => (
            <p key={warning} class="muted">
              ⚠ {warning}
            </p>
          ))}
        </Section>
      )}
      {may("usage") && <PodCharts history={history} usage={state.usage} />}
      <Containers pod={pod} state={state} />
      <Section title="Start">
        <Waterfall steps={pod.steps} />
      </Section>
      <Probes state={state} pod={pod} />
    </>
  );
}

interface OverviewProps {
  readonly pod: PodExplanation;
  readonly state: PodState;
  readonly history: PodHistory;
}

function Containers({ pod, state }: { readonly pod: PodExplanation; readonly state: PodState }) {
  const details = new Map(state.details?.map((one) => [one.name, one]));
  const usage = new Map(state.usage?.containers.map((one) => [one.name, one]));
  return (
    <Section title="Containers">
      <Table label="Containers">
        <thead>
          <tr>
            <th scope="col">Container</th>
            <th scope="col">State</th>
            <th scope="col">CPU</th>
            <th scope="col">Memory</th>
            <th scope="col">Processes</th>
            <th scope="col">Disk read, written</th>
          </tr>
        </thead>
        <tbody>
          {pod.containers.map((one) => {
            const line = usage.get(one.name);
            const more = details.get(one.name);
            const why = [one.reason, one.exitCode === undefined ? "" : `exit ${one.exitCode}`]
              .filter(Boolean)
              .join(", ");
            return (
              <tr key={one.name}>
                <th scope="row">
                  {one.name} {one.kind !== "regular" && <span class="badge">{one.kind}</span>}
                  <div class="muted small wrap">{one.image}</div>
                </th>
                <td>
                  {one.state}
                  {why !== "" && `: ${why}`}
                  <div class="muted small">
                    {count(one.restarts, "restart")}
                    {one.since !== undefined && (
                      <>
                        , <Age at={one.since} />
                      </>
                    )}
                  </div>
                  {one.message !== "" && <div class="small wrap">{one.message}</div>}
                </td>
                <td data-label="CPU">
                  {millicores(line?.nanoCores)}
                  {more?.cpuLimitCores !== undefined && <span class="muted"> of {more.cpuLimitCores * 1000}m</span>}
                  <Throttled details={more} />
                  {line?.pressure !== undefined && (
                    <div class="muted small">stalled {pressureWords(line.pressure)}</div>
                  )}
                </td>
                <td data-label="Memory">
                  {line === undefined ? "–" : bytes(line.workingSetBytes)}
                  {line?.memoryLimitBytes !== undefined && (
                    <span class="muted"> of {bytes(line.memoryLimitBytes)}</span>
                  )}
                </td>
                <td data-label="Processes">{more?.processes ?? line?.tasks ?? "–"}</td>
                <td data-label="Disk">
                  {more === undefined ? "–" : `${bytes(more.readBytes)}, ${bytes(more.writtenBytes)}`}
                </td>
              </tr>
            );
          })}
        </tbody>
      </Table>
    </Section>
  );
}

function pressureWords(pressure: UsagePressure): string {
  return Object.entries(pressure)
    .map(([name, share]) => `${name} ${Number(share).toFixed(1)} %`)
    .join(", ");
}

function Throttled({ details }: { readonly details: ContainerDetails | undefined }) {
  if (details === undefined) return null;
  const { throttledNanos, oomKills } = details;
  return (
    <>
      {throttledNanos > 0 && <div class="muted small">throttled {ago(throttledNanos / 1e6)}</div>}
      {oomKills > 0 && <div class="small bad">{count(oomKills, "OOM kill")}</div>}
    </>
  );
}

function Probes({ state, pod }: { readonly state: PodState; readonly pod: PodExplanation }) {
  const probes = state.probes ?? [];
  if (probes.length === 0) return null;
  const ready = new Map(pod.containers.map((one) => [one.name, one.ready]));
  const failures = pod.events.filter(({ reason }) => reason === "Unhealthy");
  return (
    <Section title="Probes">
      <Table label="Probes">
        <thead>
          <tr>
            <th scope="col">Probe</th>
            <th scope="col">Check</th>
            <th scope="col">Every</th>
            <th scope="col">Result</th>
          </tr>
        </thead>
        <tbody>
          {probes.map(({ container, kind, check, periodSeconds, failureThreshold }) => {
            const last = failures
              .filter((event) => event.container === container && event.message.toLowerCase().startsWith(kind))
              .at(-1);
            return (
              <tr key={`${container}/${kind}`}>
                <th scope="row">
                  {kind} <span class="muted">{container}</span>
                </th>
                <td class="wrap">{check}</td>
                <td>
                  {periodSeconds}s, {failureThreshold} failures
                </td>
                <td class="wrap">
                  {kind === "readiness" && (ready.get(container) === true ? "ready" : "not ready")}
                  {last === undefined ? (
                    <div class="muted small">no failure recorded</div>
                  ) : (
                    <div class="small">
                      {count(last.count, "failure")}, last <Age at={last.last} /> ago: {last.message}
                    </div>
                  )}
                </td>
              </tr>
            );
          })}
        </tbody>
      </Table>
    </Section>
  );
}
