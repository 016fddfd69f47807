import type { RouteRequest } from "../../adapters/net/http-route.ts";
import { Budget } from "../../lib/budget.ts";
import { ADMINISTRATORS } from "../auth/access.ts";
import type { RequestUser } from "../kinds/kind.ts";
import { tooManyRequests } from "../status/status-error.ts";

/**
 * Bytes that bodies in flight may have together, and once more answers that clients have not read: who does not read
 * must not keep others from writing.
 */
export interface RequestMemoryLimits {
  /** Of administrators. */
  readonly bytes: number;
  /** Of all others, such as pods with a token, who may do little and must not keep administrators out. */
  readonly othersBytes: number;
}

const LIMITS: RequestMemoryLimits = { bytes: 64 << 20, othersBytes: 8 << 20 };

/** What requests in flight hold of the memory, over all listeners. Who asks for more is told to come again. */
export class RequestMemory {
  private readonly bodies: Budgets;
  private readonly answers: Budgets;

  constructor(limits: RequestMemoryLimits = LIMITS) {
    this.bodies = budgetsOf(limits);
    this.answers = budgetsOf(limits);
  }

  /** The request of a user whose body and answer count until the answer was sent. */
  counted(request: RouteRequest, user: RequestUser): RouteRequest {
    const owner = user.groups.includes(ADMINISTRATORS) ? "administrators" : "others";
    const holdOf = (budget: Budget, bytes: number): boolean => {
      const release = budget.take(bytes);
      if (release === undefined) return false;
      if (request.signal.aborted) release();
      else request.signal.addEventListener("abort", release, { once: true });
      return true;
    };
    const readBody = async (limit: number): Promise<Buffer> => {
      if (!holdOf(this.bodies[owner], announcedBytes(request, limit))) throw tooManyRequests();
      return request.readBody(limit);
    };
    return { ...request, readBody, hold: (bytes) => holdOf(this.answers[owner], bytes) };
  }
}

interface Budgets {
  readonly administrators: Budget;
  readonly others: Budget;
}

function budgetsOf({ bytes, othersBytes }: RequestMemoryLimits): Budgets {
  return { administrators: new Budget(bytes), others: new Budget(othersBytes) };
}

/** A body without a length may be as long as is allowed. */
function announcedBytes({ headers }: RouteRequest, limit: number): number {
  const length = headers["content-length"];
  if (length !== undefined && /^\d+$/.test(length)) return Math.min(Number(length), limit);
  return headers["transfer-encoding"] === undefined ? 0 : limit;
}
