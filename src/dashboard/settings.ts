import { type AgentOptions, type ConfigReport, optionNames, optionOf, shownValueOf } from "../config/index.ts";
import type { PageSetting } from "../model/page-lines.ts";

/** All settings in force, with what they default to and where they come from; secrets are masked. Pure. */
export function pageSettings(values: AgentOptions, report: ConfigReport | undefined): readonly PageSetting[] {
  const origins = new Map(report?.settings.map((one) => [one.field ?? one.flag ?? "", one.places]));
  return optionNames
    .filter((name) => name !== "help" && name !== "version")
    .map((name) => {
      const { field, flag, topic, help, kind, secret, ...option } = optionOf(name);
      const inForce = kind.show(values[name]);
      // Without a configuration file some flags default to what they did before there were such files.
      const defaults = [option.default, option.legacyDefault ?? option.default].map((one) => kind.show(one));
      const differs = !defaults.includes(inForce);
      const fallback = secret === true ? "" : (defaults[0] ?? "");
      const places = differs ? (origins.get(field ?? flag ?? "") ?? []) : [];
      const known = field ?? (flag === undefined ? name : `--${flag}`);
      return { name: known, topic, help, shown: shownValueOf(name, values), fallback, differs, places };
    });
}
