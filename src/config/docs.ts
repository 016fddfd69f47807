import { optionNames, optionOf } from "./agent-options.ts";
import { knownGates } from "./feature-gates.ts";
import { oldEntries } from "./legacy/index.ts";
import { type Applies, TOPICS } from "./option.ts";
import { flagDefault } from "./parse.ts";
import { GATE_NEEDS } from "./table/gates.ts";

// Makes docs/configuration.md; used by scripts/generate-docs.mjs and by the test that the page is current.

const INTRO = `# Configuration

<!-- Made by scripts/generate-docs.mjs from src/config/table: change the table, not this page. -->

Every setting can be given in a file, most also as a flag:

    kubelet --config /etc/kubernetes/kubelet.yaml

The file is a \`KubeletConfiguration\` of \`kubelet.config.k8s.io/v1beta1\`, YAML or JSON, as for Kubernetes v1.36. Files
and command lines of kubelets since v1.3 are understood too; see [older kubelets](#older-kubelets).

## Where a value comes from

Highest first: a flag; a later \`.conf\` file of \`--config-dir\`; an earlier one; the file of \`--config\`; the default.

- Drop-ins are JSON merge patches: maps are merged key by key, lists and scalars are replaced, \`null\` brings the default
  back. They are read in the order of their names, sub-directories at their place.
- A zero (\`0\`, \`""\`, \`0s\`) in a file means the default, except in fields marked \`*\`.
- Relative paths in the \`--config\` file start at its directory; in drop-ins and flags they stay as they are.
- Without \`--config\` four defaults are those of before there were files; they stand in brackets below.
- \`evictionHard\`: a file without it gets \`memory.available<100Mi, nodefs.available<10%, nodefs.inodesFree<5%,
  imagefs.available<15%, imagefs.inodesFree<5%\`; a map in the file stands as it is, unless
  \`mergeDefaultEvictionSettings\`; one in a drop-in adds to what is there; without a file there is none.
- Feature gates of the flag and of the files are united, and the flag wins; other maps are replaced by their flag.

All problems are reported in one list, with file, line, field and what is allowed; then nothing is started and the exit
code is 1. An unknown field, or a key that is set twice, is only a warning, because nodes rely on files written
for a later version; \`--strict-config\` and \`kubelet config validate\` refuse it.

## Commands

    kubelet config view --config FILE       each setting and where it comes from
    kubelet config validate FILE...         check files, strictly
    kubelet config defaults                 a file with every default
    kubelet config diff A B                 compare two files by what they come to
    kubelet config migrate OLD              today's file from an old one
    kubelet config migrate -- FLAGS...      or from an old command line
    kubelet config view --running           what the running agent has in force, and what waits
    kubelet config apply                    make it read its files again, as SIGHUP does
    kubelet config apply FILE               put a file in force as the dynamic configuration, on trial
    kubelet config rollback [--to-local]    leave it for the last known good one, or for the agent's own files
    kubelet config history                  what was applied, and what became of it

## When a change applies

| word | meaning |
| --- | --- |
| live | at once, in place |
| new pods | at once, for containers that are started from then on |
| reload | like live, but it can evict or reject pods, so a changed file alone does not apply it: SIGHUP does |
| restart | with the next start of the agent |

The agent watches its file and drop-ins, through swapped links too. A change is loaded and judged as a whole; one that
is not valid leaves everything as it is, with the reason in the log, an event and \`kubelet config view --running\`, which
also lists what waits for a restart. \`--config-watch=all\` lets the watch apply what is marked reload, \`--config-watch=off\`
turns the watch off. SIGHUP never ends the agent; \`kubelet up\`, which has no file, it does end.

## Dynamic configuration

With \`--dynamic-config-dir DIR\` a configuration can be put in the place of the \`--config\` file while the agent runs;
flags and drop-ins still go over it. It is on trial for \`--config-trial-duration\` and then counts as the last known good
one. The agent goes back to the last known good one, or to its own file, by itself when the configuration does not load
or is not valid, when the agent crashes three times, or when for a minute it does not reach its
runtime or cannot serve its ports. Where that needs a restart the agent ends with code 1, for its supervisor to start it.
Settings marked restart are tried from the next start on; until then the trial does not end. The directory has the
layout of Kubernetes v1.11 to v1.23; that of v1.8 to v1.10 is read. Without an agent the commands work on the directory
itself when \`--dynamic-config-dir\` names it. In a cluster a ConfigMap can be the source, named by an annotation of the
Node: see [dynamic-configuration.md](dynamic-configuration.md).

A setting marked † is accepted and checked, but this version of the agent does not act on it yet; the agent logs that
once in its log when such a setting is given. One marked ‡ means nothing any more.
`;

/** The whole page. Depends on the tables alone. */
export function configurationPage(): string {
  return [INTRO, ...TOPICS.map(topicSection), olderSection(), gateSection()].filter((part) => part !== "").join("\n");
}

const SHORT: Readonly<Record<Applies, string>> = {
  live: "live",
  "new pods": "new pods",
  reload: "reload",
  restart: "restart",
};

function topicSection(topic: (typeof TOPICS)[number]): string {
  const names = optionNames.filter((name) => optionOf(name).topic === topic);
  if (names.length === 0) return "";
  const rows = names.map((name) => {
    const entry = optionOf(name);
    const field = entry.field === undefined ? "" : `\`${entry.field}\`${entry.nullable === true ? "*" : ""}`;
    const flag = entry.flag === undefined ? "" : `\`${entry.flag.length === 1 ? "-" : "--"}${entry.flag}\``;
    const mark = entry.effect === "planned" ? " †" : entry.effect === "none" ? " ‡" : "";
    const since = entry.since === undefined ? "only here" : entry.since;
    return row([field, flag, entry.kind.type, shownDefault(name), SHORT[entry.applies], since, entry.help + mark]);
  });
  return [
    `## ${topic}`,
    "",
    row(["field", "flag", "type", "default", "applies", "since", ""]),
    row(Array(7).fill("---")),
    ...rows,
    "",
  ].join("\n");
}

function shownDefault(name: (typeof optionNames)[number]): string {
  const entry = optionOf(name);
  const show = (value: unknown): string => {
    const shown = entry.kind.show(value);
    return shown === "" ? "" : `\`${shown}\``;
  };
  const old = entry.legacyDefault === undefined ? "" : ` (${show(flagDefault(entry))})`;
  return `${show(entry.default)}${old}`;
}

function olderSection(): string {
  const rows = oldEntries.map((entry) => {
    const names = [entry.field, entry.flag === undefined ? undefined : `--${entry.flag}`].filter(
      (n) => n !== undefined,
    );
    return row([names.map((name) => `\`${name}\``).join(" "), entry.last, entry.what]);
  });
  return [
    "## Older kubelets",
    "",
    "Settings that ended, the last release that had them, and what becomes of them here. Fields count in files of",
    "`kubeletconfig/v1alpha1` and `componentconfig/v1alpha1`; in a file of today they are unknown fields. Such files keep",
    "the defaults of v1.9 (QPS 5, burst 10, read-only port 10255, no authentication). `--config` with a directory, or with",
    "a file of a pod, means pod manifests, as in v1.3. `--init-config-dir` reads the file `kubelet` in it, which goes over",
    "flags, as in v1.9.",
    "",
    row(["setting", "last", ""]),
    row(Array(3).fill("---")),
    ...rows,
    "",
  ].join("\n");
}

function gateSection(): string {
  const rows = [...knownGates()].map(([name, { stage, isOn, isLocked, isHonoured }]) => {
    const needs = GATE_NEEDS[name]?.map((gate) => `\`${gate}\``).join(" ") ?? "";
    const notes = [isLocked ? "locked" : "", isHonoured ? "" : "no effect"].filter((note) => note !== "").join(", ");
    return row([`\`${name}\``, stage, isOn ? "on" : "off", notes, needs]);
  });
  return [
    "## Feature gates",
    "",
    "`featureGates` knows every gate of Kubernetes v1.36, since tools hand one map to all components; those of other",
    "components do nothing here. `AllAlpha` and `AllBeta` set all gates of their stage that are not set by name. A locked",
    "gate takes only its default; a gate cannot be turned on while one that it needs is off. A gate of the kubelet that",
    "is marked *no effect* is accepted, but this agent does not act on it: what it switches is always on here, or not",
    "built yet. A start that sets one to another value than its default says so, and so does `kubelet config validate`.",
    "",
    row(["gate", "stage", "default", "", "needs"]),
    row(Array(5).fill("---")),
    ...rows,
    "",
  ].join("\n");
}

function row(cells: readonly string[]): string {
  return `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
}
