import { useEffect, useState } from "preact/hooks";
import type { PodLine } from "../../src/model/page-lines.ts";
import type { PodExplanation } from "../../src/model/step.ts";
import { ago, count } from "../format.ts";
import { Age, Section, State, Title } from "../parts.tsx";
import { href } from "../router.ts";
import { may, now } from "../store.ts";
import { follow } from "../stream.ts";
import { stepWords } from "../words.ts";
import { Containers } from "./containers.tsx";
import { EventTable } from "./events.tsx";
import { Logs } from "./logs.tsx";
import { PodCharts, PodHistory } from "./pod-charts.tsx";
import { Probes } from "./probes.tsx";
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
      line: ({ hello: _hello, history: earlier, ...line }) => {
        if (earlier !== undefined) own.begin(earlier);
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
      <Containers pod={pod} usage={state.usage?.containers} details={state.details} />
      <Section title="Start">
        <Waterfall steps={pod.steps} />
      </Section>
      <Probes probes={state.probes ?? []} />
    </>
  );
}

interface OverviewProps {
  readonly pod: PodExplanation;
  readonly state: PodState;
  readonly history: PodHistory;
}
