import { CRON_JOBS } from "../../../adapters/kubeapi/index.ts";
import type { CronJob, JobSpec } from "../../../model/generated/types.ts";
import { type FieldError, invalid, notSupported, required } from "../../status/field-error.ts";
import { AGE, containerColumns, NAME, selectorColumn, tableOf } from "../../tables/columns.ts";
import { since } from "../../tables/human-duration.ts";
import { nonNegative } from "../../validation/numbers.ts";
import { defaultTemplate } from "../apps/template.ts";
import { defineKind } from "../kind.ts";
import { jobErrors } from "./job-validation.ts";

const POLICIES = ["Allow", "Forbid", "Replace"];

export const cronJobKind = defineKind<CronJob>({
  resource: CRON_JOBS,
  shortNames: ["cj"],
  categories: ["all"],
  hasGeneration: true,
  nameRule: "cronJob",
  defaults: (cronJob) => {
    const { spec } = cronJob;
    const job = spec.jobTemplate.spec;
    const template = job && { ...job, template: defaultTemplate(job.template) };
    return {
      ...cronJob,
      spec: {
        ...spec,
        concurrencyPolicy: spec.concurrencyPolicy || "Allow",
        suspend: spec.suspend ?? false,
        successfulJobsHistoryLimit: spec.successfulJobsHistoryLimit ?? 3,
        failedJobsHistoryLimit: spec.failedJobsHistoryLimit ?? 1,
        jobTemplate: { ...spec.jobTemplate, ...(template && { spec: template }) },
      },
    };
  },
  validate: ({ spec }) => {
    const job = spec.jobTemplate.spec;
    return [
      ...(spec.schedule === "" ? [required("spec.schedule")] : scheduleErrors(spec.schedule)),
      ...nonNegative(spec.startingDeadlineSeconds, "spec.startingDeadlineSeconds"),
      ...timeZoneErrors(spec.timeZone),
      ...(POLICIES.includes(spec.concurrencyPolicy ?? "")
        ? []
        : [notSupported("spec.concurrencyPolicy", spec.concurrencyPolicy, POLICIES)]),
      ...(job === undefined ? [required("spec.jobTemplate.spec")] : jobTemplateErrors(job)),
      ...nonNegative(spec.successfulJobsHistoryLimit, "spec.successfulJobsHistoryLimit"),
      ...nonNegative(spec.failedJobsHistoryLimit, "spec.failedJobsHistoryLimit"),
    ];
  },
  status: {},
  table: tableOf<CronJob>([
    NAME,
    { name: "Schedule", cell: ({ spec }) => spec.schedule },
    { name: "Timezone", cell: ({ spec }) => spec.timeZone ?? "<none>" },
    {
      name: "Suspend",
      type: "boolean",
      cell: ({ spec }) => (spec.suspend === undefined ? "<unset>" : boolText(spec.suspend)),
    },
    { name: "Active", type: "integer", cell: ({ status }) => status?.active?.length ?? 0 },
    {
      name: "Last Schedule",
      cell: ({ status }, now) => (status?.lastScheduleTime ? since(status.lastScheduleTime, now) : "<none>"),
    },
    AGE,
    ...containerColumns<CronJob>(({ spec }) => spec.jobTemplate.spec?.template.spec?.containers ?? []),
    selectorColumn<CronJob>(({ spec }) => spec.jobTemplate.spec?.selector),
  ]),
});

function scheduleErrors(schedule: string): readonly FieldError[] {
  const bare = schedule.replace(/^(CRON_)?TZ=\S+ /, "");
  const errors = isSchedule(bare) ? [] : [invalid("spec.schedule", schedule, scheduleProblem(schedule))];
  if (!schedule.includes("TZ")) return errors;
  const message = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead";
  return [...errors, invalid("spec.schedule", schedule, message)];
}

/** Jobs of a cron job find their pods by themselves. */
function jobTemplateErrors(job: JobSpec): readonly FieldError[] {
  const path = "spec.jobTemplate.spec";
  const errors = jobErrors(job, path);
  if (job.selector !== undefined) {
    errors.push(invalid(`${path}.selector`, job.selector, "`selector` will be auto-generated"));
  }
  if (job.manualSelector === true) errors.push(notSupported(`${path}.manualSelector`, true, ["nil", "false"]));
  return errors;
}

function boolText(value: boolean): string {
  return value ? "True" : "False";
}

const MACROS = ["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"];
const MONTHS = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec";
const DAYS = "sun|mon|tue|wed|thu|fri|sat";

/** True for a schedule of cron: five fields, a macro or `@every` with a duration. */
function isSchedule(text: string): boolean {
  if (MACROS.includes(text)) return true;
  if (text.startsWith("@every ")) return /^@every (\d+(\.\d+)?(ns|us|µs|ms|s|m|h))+$/.test(text);
  const fields = text.trim().split(/\s+/);
  const names = ["", "", "", MONTHS, DAYS];
  const limits = [
    [0, 59],
    [0, 23],
    [1, 31],
    [1, 12],
    [0, 6],
  ] as const;
  if (fields.length !== limits.length) return false;
  return fields.every((field, index) => isField(field, limits[index] ?? [0, 0], names[index] ?? ""));
}

function isField(field: string, [least, most]: readonly [number, number], names: string): boolean {
  return field.split(",").every((part) => {
    const match = /^(\*|\?|[a-z0-9]+)(?:-([a-z0-9]+))?(?:\/(\d+))?$/i.exec(part);
    if (match === null) return false;
    const [, from = "", to, step] = match;
    const value = (word: string): number => {
      const index = names === "" ? -1 : names.split("|").indexOf(word.toLowerCase());
      if (index !== -1) return index + least;
      return /^\d+$/.test(word) ? Number(word) : Number.NaN;
    };
    if (step !== undefined && Number(step) === 0) return false;
    if (from === "*" || from === "?") return to === undefined;
    const begin = value(from);
    const end = to === undefined ? begin : value(to);
    return begin >= least && end <= most && begin <= end;
  });
}

function scheduleProblem(text: string): string {
  const count = text.trim().split(/\s+/).length;
  return count === 5 ? `failed to parse schedule ${text}` : `expected exactly 5 fields, found ${count}: [${text}]`;
}

function timeZoneErrors(name: string | undefined): readonly FieldError[] {
  const at = "spec.timeZone";
  if (name === undefined) return [];
  if (name === "") return [invalid(at, name, "timeZone must be nil or non-empty string")];
  const unknown = invalid(at, name, `unknown time zone ${name}`);
  if (!name.split("/").every((part) => /^(?!-|\.{1,2}$)[A-Za-z.\-_0-9+]{1,14}$/.test(part))) return [unknown];
  if (name.toLowerCase() !== "local") return isTimeZone(name) ? [] : [unknown];
  const message = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones";
  // Only this spelling is a name that the machine knows.
  return [invalid(at, name, message), ...(name === "Local" ? [] : [unknown])];
}

function isTimeZone(name: string): boolean {
  try {
    new Intl.DateTimeFormat("en", { timeZone: name });
    return true;
  } catch {
    return false;
  }
}
