import { useState } from "preact/hooks";
import type { PodEvent } from "../../src/model/step.ts";
import { Age, Marked, Table, Title } from "../parts.tsx";
import { href } from "../router.ts";
import { events, pods } from "../store.ts";

/** Events as a table, newest first. */
export function EventTable({ events: list, search = "", withPod = true }: EventTableProps) {
  if (list.length === 0) {
    return <p class="muted empty">{search === "" ? "No events." : `No event matches “${search}”.`}</p>;
  }
  return (
    <Table label="Events" kind="events">
      <thead>
        <tr>
          <th scope="col">Last seen</th>
          <th scope="col">Reason</th>
          {withPod && <th scope="col">Object</th>}
          <th scope="col">Message</th>
        </tr>
      </thead>
      <tbody>
        {list.map((event) => (
          <tr key={event.sequence} class={event.type === "Warning" ? "warning" : ""}>
            <td class="when">
              <Age at={event.last} />
            </td>
            <td class="reason">
              <span class={event.type === "Warning" ? "badge busy" : "badge"}>
                {event.type === "Warning" && <span aria-hidden="true">⚠ </span>}
                <Marked text={event.reason} search={search} />
              </span>
            </td>
            {withPod && (
              <td class="object">
                <PodName event={event} search={search} />
              </td>
            )}
            <td class="message">
              <Marked text={event.message} search={search} />
              {event.count > 1 && <span class="muted"> ({event.count} times)</span>}
            </td>
          </tr>
        ))}
      </tbody>
    </Table>
  );
}

interface EventTableProps {
  readonly events: readonly PodEvent[];
  readonly search?: string;
  readonly withPod?: boolean;
}

function PodName({ event: { pod, container }, search }: { readonly event: PodEvent; readonly search: string }) {
  const name = <Marked text={`${pod.name}${container === undefined ? "" : ` ${container}`}`} search={search} />;
  return pods.value.has(pod.uid) ? <a href={href("pods", pod.uid)}>{name}</a> : name;
}

/** All events, with a search. */
export function Events() {
  const [search, setSearch] = useState("");
  const [warnings, setWarnings] = useState(false);
  const wanted = search.toLowerCase();
  const shown = events.value.filter(
    ({ type, reason, message, pod }) =>
      (!warnings || type === "Warning") && `${reason} ${message} ${pod.name}`.toLowerCase().includes(wanted),
  );
  return (
    <>
      <Title>Events</Title>
      <div class="tools">
        <label>
          Search <input type="search" value={search} onInput={(event) => setSearch(event.currentTarget.value)} />
        </label>
        <label class="check">
          <input type="checkbox" checked={warnings} onChange={(event) => setWarnings(event.currentTarget.checked)} />{" "}
          warnings only
        </label>
      </div>
      <div class="card">
        <EventTable events={shown.slice(0, 300)} search={search} />
      </div>
    </>
  );
}
