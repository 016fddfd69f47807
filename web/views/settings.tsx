import { useState } from "preact/hooks";
import type { PageSetting } from "../../src/model/page-lines.ts";
import { Marked, Table, Title } from "../parts.tsx";
import { may } from "../store.ts";
import { useAnswer } from "../use-answer.ts";

/** The configuration, and what of it differs from the defaults. */
export function Settings() {
  const { answer, problem } = useAnswer<readonly PageSetting[]>(may("configuration") ? "settings" : undefined);
  const [all, setAll] = useState(false);
  const [search, setSearch] = useState("");
  const wanted = search.toLowerCase();
  const shown = (answer ?? []).filter(
    ({ name, help, shown: value, differs }) =>
      (all || differs) && `${name} ${value} ${help}`.toLowerCase().includes(wanted),
  );
  return (
    <>
      <Title>Configuration</Title>
      <div class="tools">
        <label>
          Search <input type="search" value={search} onInput={(event) => setSearch(event.currentTarget.value)} />
        </label>
        <label class="check">
          <input type="checkbox" checked={all} onChange={(event) => setAll(event.currentTarget.checked)} /> also
          defaults
        </label>
        <span class="muted" role="status">
          {shown.length} of {answer?.length ?? 0} settings
        </span>
      </div>
      {problem !== undefined && <p role="alert">{problem}</p>}
      <div class="card">
        {shown.length > 0 && (
          <Table label="Settings">
            <thead>
              <tr>
                <th scope="col">Setting</th>
                <th scope="col">Value</th>
                <th scope="col">Default</th>
              </tr>
            </thead>
            <tbody>
              {shown.map((one) => (
                <tr key={one.name}>
                  <th scope="row">
                    <Marked text={one.name} search={search} />
                    <div class="muted small help">{one.help}</div>
                  </th>
                  <td data-label="Value" class={one.differs ? "differs wrap" : "wrap"}>
                    {one.shown === "" ? <span class="muted">empty</span> : one.shown}
                    {one.places.length > 0 && <div class="muted small">{one.places.join(", ")}</div>}
                  </td>
                  <td data-label="Default" class="wrap muted">
                    {one.fallback === "" ? "empty" : one.fallback}
                  </td>
                </tr>
              ))}
            </tbody>
          </Table>
        )}
        {answer !== undefined && shown.length === 0 && (
          <p class="muted empty">
            {search !== "" ? `No setting matches “${search}”.` : "Every setting has its default."}
          </p>
        )}
      </div>
    </>
  );
}
