import type { ProbeLine } from "../../src/model/page-lines.ts";
import { ago, count } from "../format.ts";
import { Age, Section, Table } from "../parts.tsx";
import { now } from "../store.ts";

/** Each probe of each container: what it checks, what it decided, its last run and how often it went the same way. */
export function Probes({ probes }: { readonly probes: readonly ProbeLine[] }) {
  if (probes.length === 0) return null;
  return (
    <Section title="Probes">
      <Table label="Probes">
        <thead>
          <tr>
            <th scope="col">Probe</th>
            <th scope="col">Result</th>
            <th scope="col">Last run</th>
            <th scope="col">Check</th>
          </tr>
        </thead>
        <tbody>
          {probes.map((probe) => (
            <tr key={`${probe.container}/${probe.kind}`}>
              <th scope="row">
                {probe.kind}
                <div class="muted small">{probe.container}</div>
              </th>
              <td data-label="Result">
                <Result probe={probe} />
              </td>
              <td data-label="Last run" class="wrap">
                <LastRun probe={probe} />
              </td>
              <td data-label="Check" class="wrap">
                {probe.check}
                <div class="muted small">{rulesOf(probe)}</div>
              </td>
            </tr>
          ))}
        </tbody>
      </Table>
    </Section>
  );
}

const WORDS: Readonly<Record<ProbeLine["kind"], { readonly success: string; readonly failure: string }>> = {
  startup: { success: "started", failure: "failed" },
  liveness: { success: "alive", failure: "failed" },
  readiness: { success: "ready", failure: "not ready" },
};

function Result({ probe: { kind, result, streak } }: { readonly probe: ProbeLine }) {
  if (result === undefined || result === "unknown") return <span class="muted">not decided yet</span>;
  const isGood = result === "success";
  return (
    <>
      <span class={isGood ? "state good" : "state bad"}>
        <span aria-hidden="true">{isGood ? "●" : "✕"}</span> {WORDS[kind][result]}
      </span>
      {streak !== undefined && (
        <div class="muted small">
          {streak.of === "success" ? count(streak.count, "success", "successes") : count(streak.count, "failure")} in a
          row
        </div>
      )}
    </>
  );
}

function LastRun({ probe: { last, nextAt } }: { readonly probe: ProbeLine }) {
  const next = nextAt === undefined ? "" : `next in ${ago(Math.max(0, nextAt - now.value))}`;
  if (last === undefined) return <span class="muted">none yet{next !== "" && `, ${next}`}</span>;
  return (
    <>
      <span class={last.outcome === "success" ? "" : last.outcome === "warning" ? "busy" : "bad"}>{last.outcome}</span>{" "}
      <span class="muted">
        <Age at={last.at} /> ago, took {ago(last.tookMs)}
        {next !== "" && `, ${next}`}
      </span>
      {last.message !== "" && <div class="small output">{last.message}</div>}
    </>
  );
}

function rulesOf({ periodSeconds, timeoutSeconds, successThreshold, failureThreshold }: ProbeLine): string {
  return [
    `every ${ago(periodSeconds * 1000)}, timeout ${ago(timeoutSeconds * 1000)}`,
    `fails after ${failureThreshold}`,
    ...(successThreshold > 1 ? [`succeeds after ${successThreshold}`] : []),
  ].join(", ");
}
