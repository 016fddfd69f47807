/** A number, or a per cent of a total, rounded as asked. What is neither counts as 0. Pure. */
export function scaledValue(value: number | string | undefined, total: number, rounding: "up" | "down"): number {
  if (typeof value === "number") return value;
  const percent = /^(\d+)%$/.exec(value ?? "")?.[1];
  if (percent === undefined) return 0;
  const exact = (Number(percent) * total) / 100;
  return rounding === "up" ? Math.ceil(exact) : Math.floor(exact);
}
