/**
 * How many orphaned pods, or stages that no pod uses, are removed at once: each has one call of the filesystem under way,
 * and those of pods that start or stop must not queue behind thousands of them. One whose server or driver hangs gives its
 * place to the next after a while.
 */
export const SWEEP_PACE = { limit: 8, patienceMs: 5000 } as const;
