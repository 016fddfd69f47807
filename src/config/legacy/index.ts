import type { OldKubelets } from "../old.ts";
import { type OptionTable, option } from "../option.ts";
import { fieldOutcome, type OldEntry } from "./entry.ts";
import { oldGate } from "./gates.ts";
import { oldEntries } from "./settings.ts";

const PREFIX = "old:";
const byField = new Map(
  oldEntries.flatMap((entry) => (entry.field === undefined ? [] : [[entry.field, entry] as const])),
);
const byFlag = new Map<string, OldEntry>(
  oldEntries.flatMap((entry) => (entry.flag === undefined ? [] : [[`${PREFIX}${entry.flag}`, entry] as const])),
);

const flags: OptionTable = Object.fromEntries(
  [...byFlag].map(([name, { flag, kind, last, validate }]) => {
    const help = `A flag up to Kubernetes ${last}.`;
    return [
      name,
      option(kind, { flag, default: undefined, topic: "General", help, hidden: true, ...(validate && { validate }) }),
    ];
  }),
);

/** The language of the kubelets from 1.3 on, as data. */
export const oldKubelets: OldKubelets = {
  flags,
  flag: (name, value) => byFlag.get(name)?.outcome(value) ?? {},
  field(name, raw) {
    const entry = byField.get(name);
    return entry === undefined ? undefined : fieldOutcome(entry, raw);
  },
  versions: ["kubeletconfig/v1alpha1", "kubelet.config.k8s.io/v1alpha1", "componentconfig/v1alpha1"],
  defaults: new Map<Parameters<OldKubelets["defaults"]["get"]>[0], unknown>([
    ["anonymousAuth", true],
    ["webhookAuthentication", false],
    ["authorizationMode", "AlwaysAllow"],
    ["readOnlyPort", 10255],
    ["eventRecordQPS", 5],
    ["eventBurst", 10],
    ["kubeAPIQPS", 5],
    ["kubeAPIBurst", 10],
  ]),
  gate: oldGate,
};

export { oldEntries };
