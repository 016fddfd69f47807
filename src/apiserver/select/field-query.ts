import { badRequest } from "../status/status-error.ts";
import { MOST_CONDITIONS } from "./label-query.ts";

type Fields = Readonly<Record<string, string>>;

/** One condition of a `fieldSelector`. */
export interface FieldCondition {
  readonly field: string;
  readonly isEqual: boolean;
  readonly value: string;
}

/** The conditions of a `fieldSelector`, `a=b,c!=d`; a backslash escapes. Throws `StatusError` if it is not one. */
export function parseFieldQuery(text: string): readonly FieldCondition[] {
  if (text === "") return [];
  const parts = splitUnescaped(text);
  if (parts.length > MOST_CONDITIONS) {
    throw badRequest(`invalid field selector: found more than ${MOST_CONDITIONS} conditions`);
  }
  return parts.map((part) => {
    const match = /^((?:[^=!\\]|\\.)*)(!=|==|=)((?:[^\\]|\\.)*)$/.exec(part);
    if (match === null) throw badRequest(`invalid field selector: can't understand '${part}'`);
    const [, field = "", operator, value = ""] = match;
    return { field, isEqual: operator !== "!=", value: unescaped(value) };
  });
}

/** True if all conditions hold. */
export function matchesFields(conditions: readonly FieldCondition[], fields: Fields): boolean {
  return conditions.every(({ field, isEqual, value }) => {
    const found = Object.hasOwn(fields, field) ? fields[field] : "";
    return (found === value) === isEqual;
  });
}

/** The only value that a field may have by these conditions; undefined if they leave a choice. */
export function requiredValue(conditions: readonly FieldCondition[], field: string): string | undefined {
  return conditions.find((one) => one.isEqual && one.field === field)?.value;
}

function splitUnescaped(text: string): string[] {
  const parts = [""];
  for (let at = 0; at < text.length; at++) {
    const char = text[at] ?? "";
    if (char === "\\") parts[parts.length - 1] += char + (text[++at] ?? "");
    else if (char === ",") parts.push("");
    else parts[parts.length - 1] += char;
  }
  return parts.filter((part) => part !== "");
}

function unescaped(text: string): string {
  return text.replaceAll(/\\(.)/g, "$1");
}
