import type { LabelSelector, NodeSelectorRequirement } from "../../model/generated/types.ts";
import { requirementMatcher } from "../../model/node-selector.ts";
import { badRequest, type StatusError } from "../status/status-error.ts";
import { labelKeyProblems, labelValueProblems } from "../validation/formats.ts";

type Labels = Readonly<Record<string, string>>;

/** Conditions of one selector: each is checked for each object, and again at each event of a watch. */
export const MOST_CONDITIONS = 1000;

/** The `labelSelector` of a query, `a=b,c in (d,e),!f`; throws `StatusError` if it is not one. */
export function parseLabelQuery(text: string): (labels: Labels) => boolean {
  if (text.trim() === "") return () => true;
  const matchers = new LabelParser(text).requirements().map(requirementMatcher);
  return (labels) => matchers.every((matches) => matches(labels));
}

/** A selector of an object as a query has it: `a=b,c in (d,e)`. */
export function labelQueryOf({ matchLabels = {}, matchExpressions = [] }: LabelSelector): string {
  const equal = Object.entries(matchLabels).map(([key, value]) => `${key}=${value}`);
  const others = matchExpressions.map(({ key, operator, values = [] }) => {
    const list = `(${[...values].sort().join(",")})`;
    switch (operator) {
      case "In":
        return `${key} in ${list}`;
      case "NotIn":
        return `${key} notin ${list}`;
      case "Exists":
        return key;
      default:
        return `!${key}`;
    }
  });
  return [...equal, ...others].sort().join(",");
}

const TOKEN = /\s*(?:(!=|==|=|!|,|\(|\)|<|>)|([^\s!=,()<>]+))/y;

function isOperator(token: string): boolean {
  return /^[!=,()<>]*$/.test(token);
}

/** Reads the grammar of label selectors, token by token. */
class LabelParser {
  private readonly tokens: string[] = [];
  private at = 0;

  constructor(text: string) {
    TOKEN.lastIndex = 0;
    const whole = text.trimEnd();
    while (TOKEN.lastIndex < whole.length) {
      const match = TOKEN.exec(whole);
      if (match === null) throw this.problem("found an unexpected character");
      this.tokens.push(match[1] ?? match[2] ?? "");
    }
  }

  requirements(): readonly NodeSelectorRequirement[] {
    const found: NodeSelectorRequirement[] = [];
    for (;;) {
      found.push(this.requirement());
      if (found.length > MOST_CONDITIONS) throw this.problem(`found more than ${MOST_CONDITIONS} requirements`);
      const next = this.tokens[this.at++];
      if (next === undefined) return found;
      if (next !== ",") throw this.problem(`found '${next}', expected: ',' or 'end of string'`);
      if (this.tokens[this.at] === undefined) throw this.problem("found '', expected: identifier after ','");
    }
  }

  private requirement(): NodeSelectorRequirement {
    if (this.take("!")) return { key: this.key(), operator: "DoesNotExist" };
    const key = this.key();
    const operator = this.tokens[this.at];
    switch (operator) {
      case undefined:
      case ",":
        return { key, operator: "Exists" };
      case "=":
      case "==":
        this.at++;
        return { key, operator: "In", values: [this.value(key)] };
      case "!=":
        this.at++;
        return { key, operator: "NotIn", values: [this.value(key)] };
      case "<":
      case ">":
        this.at++;
        return { key, operator: operator === "<" ? "Lt" : "Gt", values: [this.value(key)] };
      case "in":
      case "notin":
        this.at++;
        return { key, operator: operator === "in" ? "In" : "NotIn", values: this.values(key) };
      default:
        throw this.problem(`found '${operator}', expected: in, notin, =, ==, !=, gt, lt`);
    }
  }

  private key(): string {
    const key = this.tokens[this.at++] ?? "";
    if (isOperator(key)) throw this.problem(`found '${key}', expected: !, identifier, or 'end of string'`);
    const [problem] = labelKeyProblems(key);
    if (problem !== undefined) throw this.problem(`key: Invalid value: ${JSON.stringify(key)}: ${problem}`);
    return key;
  }

  /** A single value; none is an empty one. */
  private value(key: string): string {
    const token = this.tokens[this.at];
    if (token === undefined || token === ",") return "";
    if (isOperator(token)) throw this.problem(`found '${token}', expected: identifier`);
    this.at++;
    return this.checked(key, token);
  }

  private values(key: string): readonly string[] {
    if (!this.take("(")) throw this.problem(`found '${this.tokens[this.at] ?? ""}', expected: '('`);
    if (this.tokens[this.at] === undefined) throw this.problem("found '', expected: ',', ')' or identifier");
    const values: string[] = [];
    for (;;) {
      const token = this.tokens[this.at++];
      if (token === undefined) throw this.problem("found '', expected: ',', or ')'");
      if (token === ")") return values.length === 0 ? [""] : values;
      if (token !== ",") values.push(this.checked(key, token));
    }
  }

  private checked(key: string, value: string): string {
    const [problem] = labelValueProblems(value);
    if (problem === undefined) return value;
    throw this.problem(`values[0][${key}]: Invalid value: ${JSON.stringify(value)}: ${problem}`);
  }

  private take(token: string): boolean {
    if (this.tokens[this.at] !== token) return false;
    this.at++;
    return true;
  }

  private problem(message: string): StatusError {
    return badRequest(`unable to parse requirement: ${message}`);
  }
}
