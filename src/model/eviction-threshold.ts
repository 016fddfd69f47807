import { type Amount, parseQuantity, wholeValue } from "./quantity.ts";

/** A quantity, or a share of the capacity from 0 to 1. */
export type ThresholdValue = { readonly quantity: Amount } | { readonly share: number };

/** Parses the value of a threshold, such as `100Mi` or `10%`; throws if it is neither. */
export function parseThresholdValue(text: string): ThresholdValue {
  if (!text.endsWith("%")) return { quantity: parseQuantity(text) };
  // In the precision of Kubernetes, so that both come to the same bytes.
  return { share: Math.fround(Math.fround(Number(text.slice(0, -1))) / 100) };
}

/** False for the shares `0%` and `100%`, which disable a threshold, as in Kubernetes. */
export function isThresholdEnabled(value: ThresholdValue): boolean {
  return !("share" in value) || (value.share > 0 && value.share < 1);
}

/** A value in bytes or pieces. */
export function thresholdAmount(value: ThresholdValue, capacity: number): number {
  return "quantity" in value ? wholeValue(value.quantity) : Math.trunc(capacity * value.share);
}
