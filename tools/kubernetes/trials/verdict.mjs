// What the books must say of the requests of a load when nothing runs any more. The same as test/faults asserts of the
// composed services, by what clients and the operator API know.
/** @import { Outcome } from './load.mjs' */

const NANOS_PER_CENT = 10_000_000;
/** A stream records what it delivered once a second. The record may take half a second to arrive. */
const UNRECORDED_MS = 1_500;

/**
 * @param {readonly Outcome[]} outcomes of all requests of a tenant
 * @param {readonly { requestId: string, promptTokens: number, completionTokens: number, costNanos: string }[]} usage
 *   all that is recorded of the tenant
 * @param {{ creditCents: number, balanceCents: number, carriedNanos: string }} books what the tenant got and has, and
 *   its usage that is not posted yet
 * @returns {string[]} what is wrong
 */
export function wrongIn(outcomes, usage, books) {
  const recorded = new Map(usage.map((one) => [one.requestId, one]));
  return [
    ...(recorded.size < usage.length ? [`${usage.length - recorded.size} requests are recorded twice`] : []),
    ...outcomes.flatMap((outcome) => wrongUsage(outcome, recorded.get(outcome.id))),
    ...unknownRequests(outcomes, recorded),
    ...wrongSums(usage, books),
  ];
}

function wrongUsage(outcome, recorded) {
  const { id, failure } = outcome;
  const tokens = recorded?.completionTokens ?? 0;
  if (failure === null) {
    const { prompt_tokens: prompt, completion_tokens: completion } = outcome.usage;
    if (recorded?.promptTokens === prompt && tokens === completion) return [];
    const is = recorded ? `${recorded.promptTokens} and ${tokens}` : 'no';
    return [`${id}: answered with ${prompt} and ${completion} tokens, recorded with ${is}`];
  }
  if (/^4\d\d /.test(failure)) return recorded ? [`${id}: refused with ${failure}, but recorded`] : [];
  const seen = seenAndRecorded(outcome);
  if (tokens >= seen && tokens <= outcome.askedTokens) return [];
  const limits = `${seen} were surely recorded, ${outcome.askedTokens} asked for`;
  return [`${id} (${failure}): charged for ${tokens} tokens; ${limits}`];
}

/** The tokens of a cut stream that must be charged (docs/money.md). */
function seenAndRecorded({ arrivalsMs, fault }) {
  if (!fault?.touchesHolds) return arrivalsMs.length;
  return arrivalsMs.filter((ms) => ms < fault.sinceMs - UNRECORDED_MS).length;
}

/** A request that broke before its id came may be recorded. No other may be that the load does not know. */
function unknownRequests(outcomes, recorded) {
  const known = new Set(outcomes.map(({ id }) => id));
  const nameless = outcomes.filter(({ id, failure }) => id === null && !failure.includes('ECONNREFUSED')).length;
  const unknown = [...recorded.keys()].filter((id) => !known.has(id));
  if (unknown.length <= nameless) return [];
  return [`${unknown.length} unknown requests are recorded, and ${nameless} broke before their id: ${unknown[0]}`];
}

function wrongSums(usage, { creditCents, balanceCents, carriedNanos }) {
  const charged = usage.reduce((sum, { costNanos }) => sum + Number(costNanos), 0);
  const leftNanos = balanceCents * NANOS_PER_CENT - Number(carriedNanos);
  const wrong = [];
  if (leftNanos !== creditCents * NANOS_PER_CENT - charged)
    wrong.push(`of ${creditCents} cents ${leftNanos} nanos are left, but ${charged} were charged`);
  if (balanceCents < 0 || leftNanos < 0) wrong.push(`${-leftNanos} nanos are charged beyond the credit`);
  return wrong;
}
