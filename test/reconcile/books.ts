import type { INestMicroservice } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { AdmissionStore, parseBalanceUpdate, type AdmitRequest } from '@tollgate/admission';
import { costNanos, newId, type Difference, type UsageEvent } from '@tollgate/contracts';
import type { KafkaMessages, PostgresMessages } from '@tollgate/messaging';
import { MessagesModule, MessagesServer } from '@tollgate/messaging/nest';
import { globalModule, provide } from '@tollgate/runtime';
import { eventually, tenantRow, type TestDatabase } from '@tollgate/testing';
import { BillingModule } from '../../apps/billing/src';
import { MeteringModule } from '../../apps/metering/src';
import { ANY_PRICE } from '../../apps/metering/src/sample-events.fixture';
import { PatientMessages } from '../surfaces/patient-messages';

/** Longer than these tests run, because the sweeper would repair some of the corruptions. */
const NO_SWEEP_MS = 3_600_000;
/** Time for all messages of many tenants' requests to be handled. */
const REST_TIMEOUT_MS = 20_000;
const MONTH_MS = 31 * 24 * 60 * 60 * 1_000;
const PRICE = { version: 'v', inputFemtos: '0', cachedInputFemtos: '0', outputFemtos: '1000000000', requestNanos: '0' };
/** The tokens of each tenant's events. They cost 7 cents, in at most 3 debits, and a remainder in nanos. */
const TOKENS = [10_001, 20_002, 40_003];
const WIDE = { requestsPerMinute: 1_000_000, tokensPerMinute: 1_000_000_000, concurrency: 1_000 };

/** One tenant with three served requests in all stores, for one kind of corruption. */
export interface Served {
  tenantId: string;
  keyId: string;
  /** The request ids in ascending order. */
  ids: string[];
  /** The number of its invoice, if its month is closed. */
  invoice: string;
}

/**
 * Metering and billing on one database, with one admission store, and requests that are served through all three.
 */
export class Books {
  private app!: INestMicroservice;
  private billingIsAheadMs = 0;

  constructor(
    private readonly database: TestDatabase,
    readonly admission: AdmissionStore,
    readonly messages: PostgresMessages | KafkaMessages = new PatientMessages({
      url: database.url,
      applicationName: 'books-test',
    }),
  ) {}

  async start(): Promise<void> {
    const { messages, admission } = this;
    messages.handle('auth.tenants.get', async ({ tenantId }) => tenantRow(tenantId));
    messages.consume('credit-news', 'admission', (updates) =>
      admission.applyBalanceUpdates(updates.map(parseBalanceUpdate)),
    );
    const databaseUrl = this.database.url;
    this.app = await NestFactory.createMicroservice(
      {
        module: class Root {},
        imports: [
          MessagesModule.of(messages),
          globalModule([provide(AdmissionStore, admission)]),
          MeteringModule.register({
            databaseUrl,
            prices: ANY_PRICE,
            usageKeptMonths: null,
            sweepIntervalMs: NO_SWEEP_MS,
          }),
          BillingModule.register({
            databaseUrl,
            postingIntervalMs: 0,
            // It would repair the corruptions of these tests.
            watchEveryMs: null,
            currency: () => 'USD',
            now: () => new Date(Date.now() + this.billingIsAheadMs),
          }),
        ],
      },
      { strategy: new MessagesServer(messages), logger: false },
    );
    await this.app.listen();
  }

  async stop(): Promise<void> {
    await this.app.close();
    await this.messages.close();
  }

  /**
   * Creates a tenant whose requests are in the books, whose holds are released, and without waiting messages.
   */
  async serve(): Promise<Served> {
    const [tenantId, keyId] = [newId('ten'), newId('key')];
    await this.messages.request('billing.credit.add', { tenantId, amountCents: 1_000, source: 'manual', ref: 'first' });
    await eventually(async () => expect((await this.snapshot(tenantId))?.version).toBe(1n));
    const events = TOKENS.map((completionTokens) => usageEvent(tenantId, keyId, completionTokens));
    for (const event of events) {
      // The store may have to ask the books for the tenant first, and refuses requests until then.
      await eventually(async () => {
        const [admitted] = await this.admission.admit([admitRequest(event)]);
        expect(admitted).toMatchObject({ kind: 'held' });
      });
      await this.admission.settle([{ event }]);
      await this.messages.publish('usage-events', [event]);
    }
    await eventually(async () => expect((await this.snapshot(tenantId))?.settledHolds).toBe(0), {
      timeoutMs: REST_TIMEOUT_MS,
    });
    await this.rest(tenantId);
    return { tenantId, keyId, ids: events.map((event) => event.id), invoice: '' };
  }

  /** Closes the running month of a tenant as if it had ended. Returns the number of its invoice. */
  async close({ tenantId }: Served): Promise<string> {
    // That of its last charge: the clock may have passed the end of the month since.
    const [{ period }] = (await this.database.query<{ period: string }>(
      'SELECT max(period) AS period FROM billing.charge WHERE tenant_id = $1',
      [tenantId],
    )) as [{ period: string }];
    this.billingIsAheadMs = MONTH_MS;
    try {
      await this.messages.request('billing.invoices.close', { period, tenantId });
    } finally {
      this.billingIsAheadMs = 0;
    }
    await this.rest(tenantId);
    const { data } = await this.messages.request('billing.invoices.list', { tenantId });
    return String(data[0]!.accountingNumber);
  }

  /** Runs reconcile and returns its differences. */
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

  /** The id of the entry at this place in a tenant's journal: 1 is the first, -1 the last. */
  async entryId(tenantId: string, place: number): Promise<string> {
    const rows = await this.database.query<{ id: string }>(
      'SELECT id FROM billing.journal_entry WHERE tenant_id = $1 ORDER BY sequence',
      [tenantId],
    );
    return rows.at(place > 0 ? place - 1 : place)!.id;
  }

  /** Publishes an event and waits until metering has quarantined it. */
  async publishRefused(event: UsageEvent): Promise<void> {
    await this.messages.publish('usage-events', [event]);
    await eventually(
      async () =>
        expect(
          await this.database.query('SELECT FROM metering.rejected_event WHERE event_id = $1', [event.id]),
        ).toHaveLength(1),
      { timeoutMs: REST_TIMEOUT_MS },
    );
  }

  /** Runs SQL without the triggers. */
  async spoil(sql: string, values: unknown[]): Promise<void> {
    await this.database.query('SET session_replication_role = replica');
    try {
      expect(await this.database.query(`${sql} RETURNING 1`, values)).not.toEqual([]);
    } finally {
      await this.database.query('SET session_replication_role = DEFAULT');
    }
  }

  /**
   * Waits until no whole cent is left to post and no message to publish, and the admission store has the balances of
   * the books.
   */
  private rest(tenantId: string): Promise<void> {
    return eventually(
      async () => {
        const [row] = await this.database.query<{ version: string; due: boolean; outbox: number }>(
          `SELECT version::text, due_at IS NOT NULL AS due, (SELECT count(*)::int FROM billing.outbox) AS outbox
             FROM billing.tenant_books WHERE tenant_id = $1`,
          [tenantId],
        );
        const told = await this.snapshot(tenantId);
        expect(row).toEqual({ version: String(told?.version), due: false, outbox: 0 });
      },
      { timeoutMs: REST_TIMEOUT_MS },
    );
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

export function admitRequest({ completionTokens, ...draft }: UsageEvent): AdmitRequest {
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
