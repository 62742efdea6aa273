import type { INestMicroservice } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { AdmissionStore, parseBalanceUpdate, PostgresAdmissionStore } from '@tollgate/admission';
import type { Charge, ReconcileReport } from '@tollgate/contracts';
import { PostgresMessages } from '@tollgate/messaging';
import { MessagesModule, MessagesServer } from '@tollgate/messaging/nest';
import { globalModule, provide } from '@tollgate/runtime';
import { eventually, PATIENT_CALL_MS, tenantRow } from '@tollgate/testing';
import { BillingModule } from '../billing.module';

/**
 * The whole service on real PostgreSQL, messages and admission store. It plays auth (which knows every tenant),
 * metering (its sums) and the consumer of balance updates.
 */
export class BillingProcess {
  readonly messages: PostgresMessages;
  readonly admission: PostgresAdmissionStore;
  private app!: INestMicroservice;

  constructor(
    private readonly databaseUrl: string,
    private readonly events: Charge[],
    private readonly postingIntervalMs = 200,
  ) {
    this.messages = new PostgresMessages({ url: databaseUrl, applicationName: 'test-messages' });
    this.admission = new PostgresAdmissionStore({ url: databaseUrl, callTimeoutMs: PATIENT_CALL_MS });
  }

  async start(): Promise<this> {
    this.messages.handle('auth.tenants.get', async ({ tenantId }) => tenantRow(tenantId));
    this.messages.handle('metering.events.digest', async ({ limit }) => {
      // One range that never matches, so every id is compared.
      expect(this.events.length).toBeLessThan(limit);
      return { events: this.sorted().length, costNanos: this.nanos(), digest: 'none', end: null };
    });
    this.messages.handle('metering.events.list', async ({ after, until = '~' }) => {
      return { data: this.sorted().filter(({ id }) => id > after && id <= until), end: null };
    });
    this.messages.handle('metering.months.list', async () => ({ data: [] }));
    this.messages.handle('metering.rejected.audit', async () => ({ differences: [] }));
    this.messages.handle('metering.rollups.audit', async () => ({ differences: [], nextCursor: null }));
    this.messages.consume('credit-news', 'admission', (updates) =>
      this.admission.applyBalanceUpdates(updates.map(parseBalanceUpdate)),
    );
    const { messages, admission, databaseUrl, postingIntervalMs } = this;
    const imports = [
      MessagesModule.of(messages),
      globalModule([provide(AdmissionStore, admission)]),
      BillingModule.register({
        databaseUrl,
        postingIntervalMs,
        currency: () => 'USD',
        watchEveryMs: null,
      }),
    ];
    await admission.start();
    this.app = await NestFactory.createMicroservice(
      { module: class Root {}, imports },
      { strategy: new MessagesServer(messages), logger: false },
    );
    await this.app.listen();
    return this;
  }

  async stop(): Promise<void> {
    await this.app.close();
    await this.messages.close();
    await this.admission.close();
  }

  /** Each event once, as metering stores them. */
  private sorted() {
    const events = [...new Map(this.events.map((event) => [event.id, event])).values()];
    return events.sort((a, b) => (a.id < b.id ? -1 : 1));
  }

  private nanos(): string {
    return String(this.sorted().reduce((sum, { costNanos }) => sum + BigInt(costNanos), 0n));
  }

  /** Starts a run in this process and asks for its report until it is there. */
  async reconcile(): Promise<ReconcileReport> {
    const { id } = await this.messages.request('billing.reconcile.start', {});
    return eventually(async () => {
      const run = await this.messages.request('billing.reconcile.get', { id });
      if (run.state !== 'done') throw new Error(JSON.stringify(run));
      return run.report;
    });
  }
}
