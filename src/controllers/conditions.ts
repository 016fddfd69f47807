/** What conditions of all kinds have. */
export interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason?: string;
  readonly message?: string;
  readonly lastTransitionTime?: string | null;
}

/** The condition of a type. */
export function conditionOf<C extends Condition>(conditions: readonly C[] | undefined, type: string): C | undefined {
  return conditions?.find((one) => one.type === type);
}

export function isConditionTrue(conditions: readonly Condition[] | undefined, type: string): boolean {
  return conditionOf(conditions, type)?.status === "True";
}

/**
 * The conditions with a new one. One that has the same status and reason stays as it is; the time of the transition is
 * that of the last change of the status. Pure.
 */
export function withCondition<C extends Condition>(conditions: readonly C[], next: C): readonly C[] {
  const known = conditionOf(conditions, next.type);
  if (known?.status === next.status && known.reason === next.reason) return conditions;
  const { lastTransitionTime } = known?.status === next.status ? known : next;
  return [...withoutCondition(conditions, next.type), { ...next, ...(lastTransitionTime && { lastTransitionTime }) }];
}

export function withoutCondition<C extends Condition>(conditions: readonly C[], type: string): readonly C[] {
  return conditions.filter((one) => one.type !== type);
}
