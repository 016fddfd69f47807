import type { Container, LabelSelector } from "../../model/generated/types.ts";
import type { ApiObject, Cell, TableColumn, TableLayout } from "../kinds/kind.ts";
import { labelQueryOf } from "../select/label-query.ts";
import { since } from "./human-duration.ts";

/** A column with what it shows. */
export interface ColumnCells<T> extends Omit<TableColumn, "type" | "priority"> {
  /** Defaults to `string`. */
  readonly type?: TableColumn["type"];
  /** Shown only by `-o wide`. */
  readonly isWide?: boolean;
  cell(object: T, now: number): Cell;
}

/** The layout of a table from its columns. */
export function tableOf<T>(columns: readonly ColumnCells<T>[]): TableLayout<T> {
  return {
    columns: columns.map(({ name, type = "string", format, isWide, description = "" }) => ({
      name,
      type,
      ...(format && { format }),
      priority: isWide ? 1 : 0,
      description,
    })),
    cells: (object, now) => columns.map((column) => column.cell(object, now)),
  };
}

/** The name of the object, first in nearly every table. */
export const NAME: ColumnCells<ApiObject> = {
  name: "Name",
  format: "name",
  cell: ({ metadata }) => metadata.name ?? "",
};

/** How long ago the object was created. */
export const AGE: ColumnCells<ApiObject> = {
  name: "Age",
  cell: ({ metadata }, now) => since(metadata.creationTimestamp, now),
};

/** Names and images of the containers of a template, for wide tables. */
export function containerColumns<T>(containersOf: (object: T) => readonly Container[]): readonly ColumnCells<T>[] {
  return [
    {
      name: "Containers",
      isWide: true,
      cell: (object) =>
        containersOf(object)
          .map(({ name }) => name)
          .join(","),
    },
    {
      name: "Images",
      isWide: true,
      cell: (object) =>
        containersOf(object)
          .map(({ image }) => image ?? "")
          .join(","),
    },
  ];
}

/** The selector of the object, for wide tables. */
export function selectorColumn<T>(selectorOf: (object: T) => LabelSelector | undefined): ColumnCells<T> {
  return { name: "Selector", isWide: true, cell: (object) => selectorText(selectorOf(object)) };
}

function selectorText(selector: LabelSelector | undefined): string {
  return (selector && labelQueryOf(selector)) || "<none>";
}

/** Labels as a table shows them. */
export function labelsText(labels: Readonly<Record<string, string>> | undefined): string {
  return selectorText(labels && { matchLabels: labels });
}

/** The first entries of a list, and how many there are beyond. */
export function firstFew(list: readonly string[], empty: string): string {
  const shown = list.slice(0, 3).join(",");
  if (list.length > 3) return `${shown} + ${list.length - 3} more...`;
  return shown === "" ? empty : shown;
}
