import { schemas } from "./generated/schema.ts";
import { type Rule, supportRules } from "./pod-support-rules.ts";

/** `docs/pod-support.md`: what the agent does with each field of a pod. Made from the same table that it acts by. */
export function podSupportPage(): string {
  const sections = Object.entries(supportRules).map(([type, rules]) => section(type, rules));
  return `${INTRODUCTION}\n${sections.join("\n")}`;
}

const INTRODUCTION = `# What of a pod is supported

<!-- Made by scripts/generate-docs.mjs from src/model/pod-support-rules.ts; do not edit. -->

The agent acts by this very table. **Refused** means that no container of the pod is started: each of them waits with the
reason \`CreateContainerConfigError\` and a message that names the field, until the pod no longer asks for it. The pod is
not Failed, because a controller would replace it without end. **Does nothing** means that the pod runs as if the field
were not there; an event and \`kubelet explain\` say so. What a type below does not list does not exist in Kubernetes
v1.36; a field whose type has no section is supported with all that is in it.
`;

function section(type: string, rules: Readonly<Record<string, Rule>>): string {
  const rows = Object.keys(rules)
    .sort()
    .map((field) => `| \`${field}\` | ${said(rules[field])}${linkOf(type, field)} |`);
  return `## ${type}\n\n| field | support |\n| --- | --- |\n${rows.join("\n")}\n`;
}

function linkOf(type: string, field: string): string {
  const inner = schemas[type]?.[field]?.type ?? "";
  return Object.hasOwn(supportRules, inner) ? `, see [${inner}](#${inner.toLowerCase()})` : "";
}

function said(rule: Rule | undefined): string {
  switch (rule?.kind) {
    case "ok":
      return "supported";
    case "part":
      return `partly: ${rule.why}`;
    case "warn":
      return `does nothing: ${rule.why}`;
    case "refuse":
      return `refused: ${rule.why}`;
    default:
      return "";
  }
}
