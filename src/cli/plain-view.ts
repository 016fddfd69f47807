import { ago } from "../lib/table.ts";
import type { PodStep, PodSummary } from "../model/step.ts";
import type { PortState } from "./launcher.ts";
import { timeOfDay } from "./time-of-day.ts";
import { stepWords } from "./words.ts";

/** The live view without a terminal: a line for each change. */
export class PlainView {
  private readonly told = new Map<string, { name: string; state: string; ip: string; step: string }>();
  private readonly toldPorts = new Map<string, string>();

  /** `kubeconfig` is that of the local API; only the ports need it. */
  constructor(private readonly options: { readonly kubeconfig: string } = { kubeconfig: "" }) {}

  /** Lines for what changed among the pods since the last call. */
  pods(pods: readonly PodSummary[], now: number): string[] {
    const present = new Set(pods.map((pod) => pod.uid));
    const gone = [...this.told.keys()].filter((uid) => !present.has(uid));
    return [
      ...pods.flatMap((pod) => this.pod(pod.uid, pod, now)),
      ...gone.flatMap((uid) => this.pod(uid, undefined, now)),
    ];
  }

  /** Lines for what changed about one pod since the last call; undefined: it is gone. */
  pod(uid: string, pod: PodSummary | undefined, now: number): string[] {
    const before = this.told.get(uid);
    if (pod === undefined) {
      this.told.delete(uid);
      return before === undefined ? [] : [line(now, before.name, "gone")];
    }
    const lines: string[] = [];
    const step = pod.step === undefined ? "" : stepKey(pod.step);
    if (pod.step !== undefined && step !== before?.step) lines.push(line(now, pod.name, stepLine(pod.step)));
    if (before?.state !== pod.state || before.ip !== pod.ip) lines.push(line(now, pod.name, stateLine(pod)));
    this.told.set(uid, { name: pod.name, state: pod.state, ip: pod.ip, step });
    return lines;
  }

  /** Lines for ports that opened, or cannot. */
  ports(ports: readonly PortState[], now: number): string[] {
    return ports.flatMap((port) => {
      const text = port.address === undefined ? port.trouble : `listening on ${port.address}${this.hint(port.name)}`;
      if (text === undefined || this.toldPorts.get(port.name) === text) return [];
      this.toldPorts.set(port.name, text);
      return [line(now, port.name, text)];
    });
  }

  private hint(port: string): string {
    if (port === "cadvisor") return ", with the page: kubelet open prints a login link";
    return port === "API" ? `: kubectl --kubeconfig ${this.options.kubeconfig} get pods` : "";
  }
}

/** `2026-01-02T03:04:05Z  web-n1  text`. */
export function line(now: number, who: string, text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is removed
  return `${timeOfDay(now)}  ${who}  ${text.replaceAll(/[\u0000-\u001f\u007f-\u009f]+/g, " ")}\n`;
}

/** A step is printed when it begins and when it ends, not its progress. */
function stepKey(step: PodStep): string {
  return [step.step, step.container, step.since, step.until, step.outcome].join(" ");
}

function stepLine(step: PodStep): string {
  if (step.until === undefined) return stepWords(step);
  return `${stepWords(step)} (${step.outcome ?? "ok"}, took ${ago(Math.max(0, step.until - step.since))})`;
}

function stateLine(pod: PodSummary): string {
  const ready = `${pod.readyContainers}/${pod.totalContainers} ready`;
  return `state ${pod.state}, ${ready}${pod.ip === "" ? "" : `, IP ${pod.ip}`}`;
}
