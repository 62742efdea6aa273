import { Global, Module, type DynamicModule, type INestApplicationContext } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { AdmissionStore, readNews, type AdmitRequest } from '@tollgate/admission';
import { costNanos, newId, type Difference, type UsageEvent } from '@tollgate/contracts';
import { Messages, PostgresMessages } from '@tollgate/messaging';
import { eventually, type TestDatabase } from '@tollgate/testing';
import { BillingModule } from '../../apps/billing/src';
import { MeteringModule } from '../../apps/metering/src';

/** Beyond every deadline of these tests: the sweeper would mend some of what they spoil. */
const NO_SWEEP_MS = 3_600_000;
const PRICE = { version: 'v', inputFemtos: '0', cachedInputFemtos: '0', outputFemtos: '1000000000', requestNanos: '0' };
/** Tokens of the events of each tenant: 7 cents, in 3 debits or fewer, and some nanos carried. */
const TOKENS = [10_001, 20_002, 40_003];
const WIDE = { requestsPerMinute: 1_000_000, tokensPerMinute: 1_000_000_000, concurrency: 1_000 };

/** What a store's own tests know of its inside: each spoils it as a bad restore or a hand in the database would. */
export interface Spoilers {
  /** The balance that the store has, off by one nano. */
  balance(tenantId: string): Promise<void>;
  forget(tenantId: string): Promise<void>;
  /** A hold of 5 nanos that no running sum knows. */
  pending(tenantId: string, id: string): Promise<void>;
  /** A settled hold of 5 nanos with this record; with `counted` also in the running sum. */
  settled(event: UsageEvent): Promise<void>;
}

/** One tenant with three served requests in all stores, for one way of spoiling them. */
export interface Served {
  tenantId: string;
  keyId: string;
  /** The request ids, ascending. */
  ids: string[];
}

export interface Corruption {
  what: string;
  spoil(of: Served): Promise<unknown>;
  /** Checks that must be among the differences of the tenant, each with the ids that it must name. */
  finds: (of: Served) => [check: string, ...ids: string[]][];
}

@Global()
@Module({})
class Seams {
  static of(messages: Messages, admission: AdmissionStore): DynamicModule {
    const providers = [
      { provide: Messages, useValue: messages },
      { provide: AdmissionStore, useValue: admission },
    ];
    return { module: Seams, providers, exports: providers };
  }
}

/** Metering and billing as they are, on one database, with one admission store, and requests served through all three. */
export class Books {
  private app!: INestApplicationContext;
  readonly messages: Messages;

  constructor(
    private readonly database: TestDatabase,
    readonly admission: AdmissionStore,
  ) {
    this.messages = new PostgresMessages({ url: database.url, applicationName: 'reconcile-test' });
  }

  async start(): Promise<void> {
    const { messages, admission } = this;
    messages.handle('auth.tenants.get', async ({ tenantId }) => {
      return { id: tenantId, name: 'T', plan: 'default', status: 'active', createdAt: new Date(0).toISOString() };
    });
    messages.consume('credit-news', 'admission', (news) => admission.applyNews(news.map(readNews)));
    const databaseUrl = this.database.url;
    this.app = await NestFactory.createApplicationContext(
      {
        module: class Root {},
        imports: [
          Seams.of(messages, admission),
          MeteringModule.register({ databaseUrl, sweepIntervalMs: NO_SWEEP_MS }),
          BillingModule.register({ databaseUrl, postingIntervalMs: 0 }),
        ],
      },
      { logger: false },
    );
    await messages.start();
  }

  async stop(): Promise<void> {
    await this.messages.stopConsuming();
    await this.app.close();
    await this.messages.close();
  }

  /** A tenant whose requests are in the books, and whose holds are released. */
  async serve(tokens: readonly number[] = TOKENS): Promise<Served> {
    const [tenantId, keyId] = [newId('ten'), newId('key')];
    await this.messages.request('billing.credit.add', { tenantId, amountCents: 1_000, source: 'manual', ref: 'first' });
    await eventually(async () => expect((await this.snapshot(tenantId))?.version).toBe(1n));
    const events = tokens.map((completionTokens) => usageEvent(tenantId, keyId, completionTokens));
    for (const event of events) {
      const [admitted] = await this.admission.admit([admitRequest(event)]);
      expect(admitted).toMatchObject({ kind: 'held' });
      await this.admission.settle([{ event }]);
      await this.messages.publish('usage-events', [event]);
    }
    await eventually(async () => expect((await this.snapshot(tenantId))?.settledHolds).toBe(0), { timeoutMs: 10_000 });
    return { tenantId, keyId, ids: events.map((event) => event.id) };
  }

  /** The differences of a run, when it has ended. */
  async reconcile(): Promise<Difference[]> {
    const { id } = await this.messages.request('billing.reconcile.start', {});
    const report = await eventually(
      async () => {
        const run = await this.messages.request('billing.reconcile.get', { id });
        if (run.state !== 'done') throw new Error(JSON.stringify(run));
        return run.report;
      },
      { timeoutMs: 20_000 },
    );
    expect(report.ok).toBe(report.differences.length === 0);
    expect(report.differenceCount).toBe(report.differences.length);
    return report.differences;
  }

  /** Behind the triggers' back. */
  async spoil(sql: string, values: unknown[]): Promise<void> {
    await this.database.query('SET session_replication_role = replica');
    try {
      expect(await this.database.query(`${sql} RETURNING 1`, values)).not.toEqual([]);
    } finally {
      await this.database.query('SET session_replication_role = DEFAULT');
    }
  }

  private async snapshot(tenantId: string) {
    return (await this.admission.snapshot({ tenantId, limit: 1 }))[0];
  }
}

export function usageEvent(
  tenantId: string,
  keyId: string,
  completionTokens: number,
  endedMs = Date.now(),
): UsageEvent {
  const tokens = { promptTokens: 3, cachedTokens: 0, completionTokens };
  const at = new Date(endedMs).toISOString();
  return {
    id: newId('req'),
    tenantId,
    keyId,
    model: 'sim',
    kind: 'chat',
    stream: false,
    price: PRICE,
    startedAt: at,
    ...tokens,
    costNanos: String(costNanos(tokens, PRICE)),
    overrunNanos: '0',
    estimated: false,
    outcome: 'complete',
    endedAt: at,
  };
}

function admitRequest({ completionTokens, ...draft }: UsageEvent): AdmitRequest {
  return {
    draft,
    tenantLimits: WIDE,
    keyLimits: WIDE,
    keyBudgetNanos: null,
    tenantBudgetNanos: null,
    promptTokens: 3,
    promptFemtos: 0n,
    outputFemtosPerToken: BigInt(PRICE.outputFemtos),
    wantOutputTokens: completionTokens,
    minOutputTokens: completionTokens,
    boundIsExact: true,
  };
}

/** Every store spoiled in every way that is known, each with a tenant of its own; one run must find every one, name it, and find nothing else. */
export function corruptionSuite(
  database: TestDatabase,
  open: () => Promise<{ admission: AdmissionStore; spoilers: Spoilers }>,
): void {
  let books: Books;
  let corruptions: Corruption[];
  beforeAll(async () => {
    const { admission, spoilers } = await open();
    books = new Books(database, admission);
    await books.start();
    corruptions = allCorruptions(books, spoilers);
  });
  afterAll(() => books.stop());

  it('finds nothing where nothing is spoiled', async () => {
    await books.serve();
    expect(await books.reconcile()).toEqual([]);
  });

  it('finds everything that was spoiled, names it, and nothing else', async () => {
    const sound = await books.serve();
    const cases = await Promise.all(
      corruptions.map(async (corruption) => ({ corruption, served: await books.serve() })),
    );
    for (const { corruption, served } of cases) await corruption.spoil(served);
    const differences = await books.reconcile();
    const of = (tenantId: string) => differences.filter((difference) => difference.tenantId === tenantId);
    for (const { corruption, served } of cases) {
      const found = of(served.tenantId);
      const named = corruption.finds(served).map(([check, ...ids]) => {
        const ofCheck = found.filter((difference) => difference.check === check);
        const all = ofCheck.flatMap((difference) => difference.ids);
        return ofCheck.length > 0 ? [check, ...ids.filter((id) => all.includes(id))] : ['not found', check];
      });
      expect([corruption.what, ...named]).toEqual([corruption.what, ...corruption.finds(served)]);
      for (const { expected, actual } of found) expect(expected).not.toBe(actual);
    }
    expect(of(sound.tenantId)).toEqual([]);
    const spoiled = new Set(cases.map(({ served }) => served.tenantId));
    expect(differences.filter((difference) => !spoiled.has(difference.tenantId))).toEqual([]);
  }, 60_000);
}

const CHARGED = 'every event is charged';
const RECORDED = 'every charge has its event';
const SAME = 'a charge is what its event says';
const HOUR = 'a roll-up of an hour is the sum of its events';
const TOTAL = 'charges = usage debits + carried';

function allCorruptions(books: Books, spoilers: Spoilers): Corruption[] {
  const sql = (text: string, values: (of: Served) => unknown[]) => (of: Served) => books.spoil(text, values(of));
  const first = ({ ids }: Served) => [ids[0]];
  const tenant = ({ tenantId }: Served) => [tenantId];
  const newEvent = new Map<string, string>();
  return [
    {
      what: 'a missing charge',
      spoil: sql('DELETE FROM billing.charge WHERE id = $1', first),
      finds: ({ ids }) => [[CHARGED, ids[0]!], [TOTAL], ['a coverage names its charges and sums them']],
    },
    {
      what: 'all charges missing',
      spoil: sql('DELETE FROM billing.charge WHERE tenant_id = $1', tenant),
      finds: ({ ids }) => [[CHARGED, ...ids], [TOTAL]],
    },
    {
      what: 'a changed charge',
      spoil: sql('UPDATE billing.charge SET cost_nanos = cost_nanos + 1 WHERE id = $1', first),
      finds: ({ ids }) => [[SAME, ids[0]!], [TOTAL]],
    },
    {
      what: 'two charges changed so that their sum is right',
      spoil: async ({ ids }) => {
        await books.spoil('UPDATE billing.charge SET cost_nanos = cost_nanos + 7 WHERE id = $1', [ids[0]]);
        await books.spoil('UPDATE billing.charge SET cost_nanos = cost_nanos - 7 WHERE id = $1', [ids[1]]);
      },
      finds: ({ ids }) => [[SAME, ids[0]!, ids[1]!]],
    },
    {
      what: 'a charge that nobody used',
      spoil: sql(
        `INSERT INTO billing.charge SELECT id || 'x', tenant_id, key_id, cost_nanos, ended_at, period, 99 FROM billing.charge WHERE id = $1`,
        first,
      ),
      finds: ({ ids }) => [[RECORDED, `${ids[0]!}x`], [TOTAL]],
    },
    {
      what: 'a doubled debit',
      spoil: sql(
        `INSERT INTO billing.journal_entry (id, tenant_id, sequence, type, amount_cents, source, ref, input_hash, period, balance_after_cents, created_at)
         SELECT 'ent_again_' || tenant_id, tenant_id, 99, type, amount_cents, source, 'again', input_hash, period, balance_after_cents, created_at
         FROM billing.journal_entry WHERE tenant_id = $1 AND type = 'usage' AND sequence = 2`,
        tenant,
      ),
      finds: ({ tenantId }) => [
        [TOTAL],
        ['balance = sum of entries'],
        ['every usage entry has its coverage', `ent_again_${tenantId}`],
        ['postings of an entry sum to zero', `ent_again_${tenantId}`],
      ],
    },
    {
      what: 'a changed debit',
      spoil: sql(
        `UPDATE billing.journal_entry SET amount_cents = amount_cents - 1 WHERE tenant_id = $1 AND type = 'usage' AND sequence = 2`,
        tenant,
      ),
      finds: () => [[TOTAL], ['balance = sum of entries'], ['postings of an entry sum to zero']],
    },
    {
      what: 'a changed balance in the books',
      spoil: sql('UPDATE billing.tenant_books SET balance_cents = balance_cents + 1 WHERE tenant_id = $1', tenant),
      finds: () => [['balance = sum of entries'], ['balance = balance of the admission store']],
    },
    {
      what: 'a changed rest',
      spoil: sql('UPDATE billing.tenant_books SET carried_nanos = carried_nanos + 1 WHERE tenant_id = $1', tenant),
      finds: () => [[TOTAL], ['carried = rest of the newest coverage'], ['balance = balance of the admission store']],
    },
    {
      what: 'a deleted event',
      spoil: sql('DELETE FROM metering.usage_event WHERE id = $1', first),
      finds: ({ ids }) => [[RECORDED, ids[0]!], [HOUR]],
    },
    {
      what: 'an event with another cost',
      spoil: sql('UPDATE metering.usage_event SET cost_nanos = cost_nanos - 1 WHERE id = $1', first),
      finds: ({ ids }) => [[SAME, ids[0]!], [HOUR]],
    },
    {
      what: 'an event that never reached billing',
      spoil: async ({ tenantId, ids }) => {
        newEvent.set(tenantId, newId('req'));
        await books.spoil(
          `INSERT INTO metering.usage_event SELECT started_at, ended_at, rated_at, cost_nanos, overrun_nanos, rated_nanos, input_femtos, cached_input_femtos, output_femtos,
             request_nanos, prompt_tokens, cached_tokens, completion_tokens, kind, outcome, stream, estimated, $2, tenant_id, key_id, model, price_version
           FROM metering.usage_event WHERE id = $1`,
          [ids[0], newEvent.get(tenantId)],
        );
      },
      finds: ({ tenantId }) => [[CHARGED, newEvent.get(tenantId)!], [HOUR]],
    },
    {
      what: 'a wrong roll-up',
      spoil: sql(
        'UPDATE metering.usage_hour SET completion_tokens = completion_tokens + 1 WHERE tenant_id = $1',
        tenant,
      ),
      finds: () => [[HOUR]],
    },
    {
      what: 'a missing roll-up',
      spoil: sql('DELETE FROM metering.usage_hour WHERE tenant_id = $1', tenant),
      finds: () => [[HOUR], ['the roll-up of a tenant is the sum of its events']],
    },
    {
      what: 'a wrong sum of a tenant',
      spoil: sql('UPDATE metering.tenant_sum SET cost_nanos = cost_nanos + 1 WHERE tenant_id = $1', tenant),
      finds: () => [['the roll-up of a tenant is the sum of its events']],
    },
    {
      what: 'a balance in the admission store that is off by a nano',
      spoil: ({ tenantId }) => spoilers.balance(tenantId),
      finds: () => [['balance = balance of the admission store']],
    },
    {
      what: 'a tenant that the admission store lost',
      spoil: ({ tenantId }) => spoilers.forget(tenantId),
      finds: () => [['the admission store knows the tenant']],
    },
    {
      what: 'a stray pending hold',
      spoil: ({ tenantId, ids }) => spoilers.pending(tenantId, `${ids[0]!}x`),
      finds: ({ ids }) => [
        ['pending sum = sum of pending holds', `${ids[0]!}x`],
        ['a pending hold lives or expires', `${ids[0]!}x`],
      ],
    },
    {
      what: 'a settled hold whose usage never reached the books',
      spoil: async ({ tenantId, keyId }) => {
        const event = usageEvent(tenantId, keyId, 5, Date.now() - 3_600_000);
        newEvent.set(tenantId, event.id);
        await spoilers.settled(event);
      },
      finds: ({ tenantId }) => [
        ['settled sum = sum of settled holds', newEvent.get(tenantId)!],
        ['a settled hold reaches the books', newEvent.get(tenantId)!],
      ],
    },
    {
      what: 'a settled hold that was never released',
      spoil: async ({ tenantId, keyId, ids }) => {
        await spoilers.settled({ ...usageEvent(tenantId, keyId, 5), id: ids[0]! });
        await books.spoil(`UPDATE billing.charge SET gathered_at = gathered_at - interval '1 hour' WHERE id = $1`, [
          ids[0],
        ]);
      },
      finds: ({ ids }) => [['a hold is released once its charge is gathered', ids[0]!]],
    },
  ];
}
