import { execFileSync } from 'node:child_process';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const VERDICT = pathToFileURL(resolve(__dirname, '../../tools/kubernetes/trials/verdict.mjs')).href;
const CENT = 10_000_000;
const FAULT_MS = 100_000;

interface Case {
  outcomes: object[];
  usage: object[];
  books: object;
}

/** What the trials find wrong. In another process, because it is in an ES module. */
function wrongIn({ outcomes, usage, books }: Case): string[] {
  const args = [outcomes, usage, books].map((each) => JSON.stringify(each)).join(', ');
  const program = `import { wrongIn } from '${VERDICT}'; console.log(JSON.stringify(wrongIn(${args})));`;
  const output = execFileSync(process.execPath, ['--input-type=module', '--eval', program], { encoding: 'utf8' });
  return JSON.parse(output) as string[];
}

const answer = (id: string, tokens = 20) => ({
  ...{ kind: 'plain', id, failure: null, usage: { prompt_tokens: 8, completion_tokens: tokens } },
  ...{ arrivalsMs: [], askedTokens: 20, fault: null },
});
/** A stream that delivered a token each of these times, before it was cut. */
const cut = (id: string | null, arrivalsMs: number[], touchesHolds = true) => ({
  ...{ kind: 'streams', id, failure: 'aborted', usage: null, arrivalsMs, askedTokens: 240 },
  fault: { sinceMs: FAULT_MS, touchesHolds },
});
const refusal = (id: string) => ({ ...cut(id, []), failure: '402 credit_exhausted', fault: null });
/** Each token costs a cent, and a prompt nothing. */
const used = (requestId: string, completionTokens: number) => ({
  ...{ requestId, promptTokens: 8, completionTokens, costNanos: String(completionTokens * CENT) },
});
const left = (balanceCents: number, carriedNanos = '0') => ({ creditCents: 100, balanceCents, carriedNanos });
/** Two tokens were surely recorded before the fault, and two perhaps. */
const ARRIVALS = [-3_000, -1_600, -1_400, -100].map((ms) => FAULT_MS + ms);

it('the verdict finds nothing wrong in books that say what clients saw', () => {
  const outcomes = [answer('req_1'), cut('req_2', ARRIVALS), cut('req_3', []), cut(null, []), refusal('req_4')];
  const usage = [used('req_1', 20), used('req_2', 2), used('req_nameless', 8)];
  expect(wrongIn({ outcomes, usage, books: left(70) })).toEqual([]);
  // Not posted yet.
  expect(wrongIn({ outcomes, usage, books: left(100, String(30 * CENT)) })).toEqual([]);
});

it.each<[string, Case, RegExp[]]>([
  [
    'an answer that is not recorded',
    { outcomes: [answer('req_1')], usage: [], books: left(100) },
    [/recorded with no/],
  ],
  [
    'an answer that is recorded with fewer tokens',
    { outcomes: [answer('req_1')], usage: [used('req_1', 19)], books: left(81) },
    [/answered with 8 and 20 tokens, recorded with 8 and 19/],
  ],
  [
    'a request that is recorded twice',
    { outcomes: [answer('req_1')], usage: [used('req_1', 20), used('req_1', 20)], books: left(60) },
    [/^1 requests are recorded twice/],
  ],
  [
    'a cut stream that is charged less than it had surely recorded',
    { outcomes: [cut('req_2', ARRIVALS)], usage: [used('req_2', 1)], books: left(99) },
    [/charged for 1 tokens; 2 were surely recorded/],
  ],
  [
    'a cut stream that is charged less than was seen, although no gateway and no Redis was lost',
    { outcomes: [cut('req_2', ARRIVALS, false)], usage: [used('req_2', 3)], books: left(97) },
    [/charged for 3 tokens; 4 were surely recorded/],
  ],
  [
    'a cut stream that is charged more than was asked for',
    { outcomes: [cut('req_2', ARRIVALS)], usage: [used('req_2', 241)], books: { ...left(59), creditCents: 300 } },
    [/charged for 241 tokens; .*240 asked for/],
  ],
  [
    'a refusal that is charged',
    { outcomes: [refusal('req_4')], usage: [used('req_4', 1)], books: left(99) },
    [/refused with 402 credit_exhausted, but recorded/],
  ],
  [
    'more unknown requests than broke before their id came',
    { outcomes: [cut(null, [])], usage: [used('req_5', 1), used('req_6', 1)], books: left(98) },
    [/^2 unknown requests are recorded, and 1 broke/],
  ],
  [
    'a charge that the balance does not show',
    { outcomes: [answer('req_1')], usage: [used('req_1', 20)], books: left(100) },
    [/^of 100 cents 1000000000 nanos are left, but 200000000 were charged/],
  ],
  [
    'charges beyond the credit',
    {
      outcomes: [answer('req_1')],
      usage: [used('req_1', 20)],
      books: { ...left(0, String(10 * CENT)), creditCents: 10 },
    },
    [/^100000000 nanos are charged beyond the credit/],
  ],
])('the verdict finds %s', (_, books, expected) => {
  expect(wrongIn(books)).toEqual(expected.map((pattern) => expect.stringMatching(pattern)));
});
