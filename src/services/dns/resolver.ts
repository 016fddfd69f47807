import type { Abortable } from "../../lib/abort.ts";
import { FairShare } from "../../lib/fair-share.ts";
import {
  type DnsAnswer,
  DnsFormatError,
  type DnsQuery,
  type DnsRecord,
  encodeAnswer,
  encodeQuery,
  OWN_UDP_BYTES,
  parseAddresses,
  parseQuery,
  RCODE,
  TYPE,
  udpLimit,
} from "./message.ts";
import { TTL, type Zone } from "./zone.ts";

/** Answers of other servers. */
export interface Upstream {
  /** Sends a query on as it is; undefined if nobody answers in time. Never rejects but for an abort. */
  ask(query: Buffer, options: Abortable & { readonly isTcp: boolean }): Promise<Buffer | undefined>;
}

export interface ResolverDeps {
  readonly zone: Pick<Zone, "resolve">;
  readonly upstream: Upstream;
  /** 0 to below 1. */
  readonly random: () => number;
}

/** How a message came. */
interface Asking extends Abortable {
  readonly isTcp: boolean;
  /** The address that asks. */
  readonly client: string;
}

const LARGEST_TCP_BYTES = 65_535;
/** Aliases that follow each other. */
const MAX_ALIASES = 8;
/**
 * Queries that wait for other servers at a time, over all clients; more are refused, so that a loop between servers ends
 * and a pod that asks for names of a server that is slow does not keep others from theirs.
 */
const MAX_WAITING = 256;
const EMPTY: DnsAnswer = { rcode: RCODE.ok, isAuthoritative: false, answers: [], authority: [], additional: [] };

/** Answers one message: names of the cluster itself, others through the servers of the node. */
export class DnsResolver {
  private readonly waiting = new FairShare(MAX_WAITING);

  constructor(private readonly deps: ResolverDeps) {}

  /** The answer; undefined for what gets none. Never rejects but for an abort. */
  async respond(bytes: Buffer, options: Asking): Promise<Buffer | undefined> {
    let query: DnsQuery;
    try {
      query = parseQuery(bytes);
    } catch (error) {
      if (!(error instanceof DnsFormatError)) throw error;
      return error.id === undefined ? undefined : formatFailure(error.id);
    }
    const limit = options.isTcp ? LARGEST_TCP_BYTES : udpLimit(query);
    const say = (answer: DnsAnswer): Buffer => encodeAnswer(query, answer, limit);
    if (query.opcode !== 0) return say({ ...EMPTY, rcode: RCODE.notImplemented });
    if (query.edns !== undefined && query.edns.version > 0) return say({ ...EMPTY, rcode: RCODE.badVersion });
    const result = this.deps.zone.resolve(query);
    if (result.kind === "answer") return say(this.shuffled(result.answer));
    if (result.kind === "alias") return say(await this.follow(query, result.target, options));
    const answer = await this.ask(bytes, options);
    // What belongs to another question is none of ours.
    if (answer === undefined || answer.length < 12) return say({ ...EMPTY, rcode: RCODE.server });
    answer.writeUInt16BE(query.id, 0);
    return answer;
  }

  /** The name that an ExternalName service stands for, with its addresses: small resolvers do not ask a second time. */
  private async follow({ name, type }: DnsQuery, first: string, options: Asking): Promise<DnsAnswer> {
    const answers: DnsRecord[] = [];
    let from = name;
    let target = first;
    for (let left = MAX_ALIASES; left > 0; left--) {
      answers.push({ name: from, ttl: TTL, data: { type: "CNAME", name: target } });
      if (type === TYPE.CNAME) return { ...EMPTY, isAuthoritative: true, answers };
      const result = this.deps.zone.resolve({ name: target, type, class: 1 });
      if (result.kind === "answer") return { ...result.answer, answers: [...answers, ...result.answer.answers] };
      if (result.kind === "elsewhere") {
        const query = encodeQuery({ id: 0, name: target, type });
        const foreign = await this.ask(query, options);
        if (foreign === undefined) return { ...EMPTY, rcode: RCODE.server, answers };
        const found = addressesIn(foreign);
        return { ...EMPTY, rcode: found.rcode, answers: [...answers, ...found.answers] };
      }
      from = target;
      target = result.target;
    }
    return { ...EMPTY, rcode: RCODE.server };
  }

  private async ask(bytes: Buffer, options: Asking): Promise<Buffer | undefined> {
    const release = this.waiting.take(options.client);
    if (release === undefined) return undefined;
    try {
      return await this.deps.upstream.ask(bytes, options);
    } finally {
      release();
    }
  }

  /** In another order each time: clients take the first address. */
  private shuffled(answer: DnsAnswer): DnsAnswer {
    const { answers } = answer;
    if (answers.length < 2) return answer;
    const begin = Math.floor(this.deps.random() * answers.length);
    return { ...answer, answers: [...answers.slice(begin), ...answers.slice(0, begin)] };
  }
}

function addressesIn(bytes: Buffer): { readonly rcode: number; readonly answers: readonly DnsRecord[] } {
  try {
    return parseAddresses(bytes);
  } catch (error) {
    if (!(error instanceof DnsFormatError)) throw error;
    return { rcode: RCODE.server, answers: [] };
  }
}

/** Nothing of the question can be repeated. */
function formatFailure(id: number): Buffer {
  const query: DnsQuery = { id, opcode: 0, isRecursive: false, name: "", type: 0, class: 0 };
  const bytes = encodeAnswer(query, { ...EMPTY, rcode: RCODE.format }, OWN_UDP_BYTES).subarray(0, 12);
  bytes.writeUInt16BE(0, 4);
  return bytes;
}
