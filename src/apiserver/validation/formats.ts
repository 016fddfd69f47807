// Rules for texts, with messages in the words of Kubernetes: clients and people compare them. Each returns what is wrong
// with a text, nothing if it is right.

const LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const LABEL_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN = `${LABEL}(\\.${LABEL})*`;
const KEY = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const CONFIG_KEY = "[-._a-zA-Z0-9]+";

const patternCache = new Map<string, RegExp>();

function matches(pattern: string, text: string): boolean {
  let known = patternCache.get(pattern);
  if (known === undefined) {
    known = new RegExp(`^${pattern}$`);
    patternCache.set(pattern, known);
  }
  return known.test(text);
}

/** `rule (e.g. 'a',  or 'b', regex used for validation is '…')`. */
function ruleText(rule: string, pattern: string, examples: readonly string[]): string {
  const shown = examples.map((example) => `'${example}', `).join(" or ");
  return `${rule} (e.g. ${shown}regex used for validation is '${pattern}')`;
}

/** `characters` in names, `bytes` in labels. */
type LengthUnit = "characters" | "bytes";

function lengthProblems(text: string, most: number, unit: LengthUnit = "characters"): string[] {
  return text.length > most ? [`must be no more than ${most} ${unit}`] : [];
}

/** A DNS label: names of namespaces, containers and volumes. */
export function labelProblems(text: string): string[] {
  const problems = lengthProblems(text, 63);
  if (matches(LABEL, text)) return problems;
  const rule =
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character";
  const isDotted = matches(SUBDOMAIN, text);
  return [...problems, isDotted ? "must not contain dots" : ruleText(rule, LABEL, ["my-name", "123-abc"])];
}

/** A DNS label that begins with a letter: names of services. */
export function label1035Problems(text: string): string[] {
  const problems = lengthProblems(text, 63);
  const rule =
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character";
  return matches(LABEL_1035, text) ? problems : [...problems, ruleText(rule, LABEL_1035, ["my-name", "abc-123"])];
}

/** A DNS name: names of most objects. */
export function subdomainProblems(text: string, unit: LengthUnit = "characters"): string[] {
  const problems = lengthProblems(text, 253, unit);
  const rule =
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character";
  return matches(SUBDOMAIN, text) ? problems : [...problems, ruleText(rule, SUBDOMAIN, ["example.com"])];
}

/** The key of a label, annotation, finalizer or resource: `name` or `domain/name`. */
export function labelKeyProblems(text: string): string[] {
  const rule =
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";
  const whole = ruleText(rule, KEY, ["MyName", "my.name", "123-abc"]);
  const parts = text.split("/");
  if (parts.length > 2) {
    return [`a valid label key ${whole} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`];
  }
  const name = parts.at(-1) ?? "";
  const prefix = parts.length === 2 ? (parts[0] ?? "") : undefined;
  const problems: string[] = [];
  if (prefix === "") problems.push("prefix part must be non-empty");
  else if (prefix !== undefined)
    problems.push(...subdomainProblems(prefix, "bytes").map((text) => `prefix part ${text}`));
  if (name === "") problems.push("name part must be non-empty");
  else problems.push(...lengthProblems(name, 63, "bytes").map((text) => `name part ${text}`));
  if (!matches(KEY, name)) problems.push(`name part ${whole}`);
  return problems;
}

/** The value of a label. */
export function labelValueProblems(text: string): string[] {
  const problems = lengthProblems(text, 63, "bytes");
  const rule =
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";
  if (text === "" || matches(KEY, text)) return problems;
  return [...problems, ruleText(rule, `(${KEY})?`, ["MyValue", "my_value", "12345"])];
}

/** A key of a ConfigMap or Secret. */
export function configKeyProblems(text: string): string[] {
  const problems = lengthProblems(text, 253);
  const rule = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'";
  if (!matches(CONFIG_KEY, text)) problems.push(ruleText(rule, CONFIG_KEY, ["key.name", "KEY_NAME", "key-name"]));
  if (text === "." || text === "..") problems.push(`must not be '${text}'`);
  else if (text.startsWith("..")) problems.push("must not start with '..'");
  return problems;
}

/** The name of a port: at most 15 characters, at least one of them a letter. */
export function portNameProblems(text: string): string[] {
  const problems = lengthProblems(text, 15);
  if (!/^[-a-z0-9]+$/.test(text)) {
    problems.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)");
  }
  if (!/[a-z]/.test(text)) problems.push("must contain at least one letter (a-z)");
  if (text.includes("--")) problems.push("must not contain consecutive hyphens");
  if (text.startsWith("-") || text.endsWith("-")) problems.push("must not begin or end with a hyphen");
  return problems;
}

/** A port's number. */
export function portProblems(port: number): string[] {
  return port >= 1 && port <= 65_535 ? [] : ["must be between 1 and 65535, inclusive"];
}

/** What a path can hold: names of kinds without a rule of their own. */
export function pathProblems(text: string): string[] {
  if (text === "." || text === "..") return [`may not be '${text}'`];
  return ["/", "%"].filter((word) => text.includes(word)).map((word) => `may not contain '${word}'`);
}
