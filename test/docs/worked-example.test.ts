import { costNanos, FEMTOS_PER_NANO, NANOS_PER_CENT } from '@tollgate/contracts';
import { readConfigFile, stampPrice } from '@tollgate/runtime';
import { join } from 'node:path';
import { balanceUpdate } from '../../apps/billing/src/ledger/core/books';
import { newBooks } from '../../apps/billing/src/ledger/core/books.fixture';
import { book } from '../../apps/billing/src/ledger/core/entry';
import { gather } from '../../apps/billing/src/ledger/core/gather';
import { post } from '../../apps/billing/src/ledger/core/post';
import { STREAM_SLICE_TOKENS } from '../../apps/gateway/src/admit/admit';
import { toUsageEvent } from '../../apps/gateway/src/settle/usage-event';
import { ROOT, textOf } from './document';

const MAX_TOKENS = 2_000;
const ANSWER_TOKENS = 1_500;
const PROMPT_TOKENS = 8;
const CREDIT_CENTS = 1_000n;
const PERIOD = '2026-11';

const section = /^## One request in amounts\n([^]*?)^## /m
  .exec(textOf('docs/ARCHITECTURE.md'))![1]!
  .replace(/\s+/g, ' ');
const { price: configured, kind } = readConfigFile(join(ROOT, 'tollgate.yaml'), {}).models.find(
  ({ id }) => id === 'sim-large',
)!;
const price = stampPrice(configured, kind);
const cost = (promptTokens: number, completionTokens: number) =>
  costNanos({ promptTokens, cachedTokens: 0, completionTokens }, price);

/** Expects that the document contains the amount with its unit. */
function says(amount: bigint | number, unit: string): void {
  expect(section).toContain(`${amount.toLocaleString('en-US')} ${unit}`);
}

it('the example of ARCHITECTURE.md holds, extends and settles the amounts of the code', () => {
  says(BigInt(price.outputFemtos) / FEMTOS_PER_NANO, 'nanos per token');
  says(CREDIT_CENTS * NANOS_PER_CENT, 'nanos');
  says(PROMPT_TOKENS, 'tokens');
  says(cost(PROMPT_TOKENS, 0), 'nanos');
  says(STREAM_SLICE_TOKENS, 'tokens');
  const held = cost(PROMPT_TOKENS, STREAM_SLICE_TOKENS);
  says(held - cost(PROMPT_TOKENS, 0), 'nanos');
  says(held, 'nanos');
  says(CREDIT_CENTS * NANOS_PER_CENT - held, 'nanos');
  says(MAX_TOKENS - STREAM_SLICE_TOKENS, 'tokens');
  const extended = cost(PROMPT_TOKENS, MAX_TOKENS);
  says(extended - held, 'nanos');
  says(extended, 'nanos');
  says(cost(PROMPT_TOKENS, 540), 'nanos');
  says(cost(PROMPT_TOKENS, ANSWER_TOKENS), 'nanos');
  says(extended - cost(PROMPT_TOKENS, ANSWER_TOKENS), 'nanos');
});

it('the example of ARCHITECTURE.md charges, posts and carries the amounts of the code', () => {
  const draft = {
    id: 'req_1',
    tenantId: 'ten_1',
    keyId: 'key_1',
    model: 'sim-large',
    kind: 'chat',
    stream: true,
    price,
    startedAt: `${PERIOD}-23T06:01:03.455Z`,
  } as const;
  const event = toUsageEvent(draft, {
    tokens: { promptTokens: PROMPT_TOKENS, cachedTokens: 0, completionTokens: ANSWER_TOKENS },
    cost: cost(PROMPT_TOKENS, ANSWER_TOKENS),
    estimated: false,
    outcome: 'complete',
    holdNanos: cost(PROMPT_TOKENS, MAX_TOKENS),
    endedMs: Date.parse(`${PERIOD}-23T06:01:08.736Z`),
  });
  expect(section).toContain(`costNanos: "${event.costNanos}"`);
  expect(section).toContain(`overrunNanos: "${event.overrunNanos}"`);

  const charge = {
    id: event.id,
    tenantId: event.tenantId,
    keyId: event.keyId,
    costNanos: BigInt(event.costNanos),
    endedAt: new Date(event.endedAt),
    ownPeriod: PERIOD,
  };
  const topUp = { type: 'topup', amountCents: CREDIT_CENTS, source: 'manual', ref: 'demo', period: PERIOD } as const;
  const { books } = book(newBooks(event.tenantId), 'ent_1', topUp);
  const gathered = gather(books, [], [charge], { running: PERIOD, closedThrough: '0000-00' });
  says(BigInt(balanceUpdate(gathered.books, [event.id]).balanceNanos), 'nanos');

  const posted = post(gathered.books, gathered.months, () => 'ent_2');
  const [entry] = posted.entries;
  expect(section).toContain(`\`${entry!.ref}\``);
  expect(section).toContain(`is −${-entry!.amountCents} cents`);
  for (const { account, amountCents } of entry!.postings)
    expect(section).toContain(
      `\`${account}\` ${amountCents > 0 ? '+' : '−'}${amountCents < 0n ? -amountCents : amountCents}`,
    );
  says(posted.books.balanceCents, 'cents');
  says(posted.books.carriedNanos, 'nanos');

  const requests = Number(NANOS_PER_CENT / posted.books.carriedNanos);
  expect(section).toContain(`After ${requests} such requests`);
});
