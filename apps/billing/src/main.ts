import '@tollgate/runtime/require-node';
import '@tollgate/runtime/catch-signals';
import '@tollgate/runtime/own-source-maps';
import { NestFactory } from '@nestjs/core';
import { AdmissionStore, askForCredit, RedisAdmissionStore } from '@tollgate/admission';
import { kafkaMessages } from '@tollgate/messaging';
import { MessagesModule, MessagesServer } from '@tollgate/messaging/nest';
import { checkSchema, migrateSchema, query } from '@tollgate/postgres';
import { FileConfigSource, globalModule, openTracer, provide, runService } from '@tollgate/runtime';
import { BillingModule } from './billing.module';
import { BillingDataSource, MIGRATIONS } from './database';
import { SETTINGS } from './settings';

/**
 * Batches of different tenants at the same time. Each is a separate transaction, which locks books in sorted order.
 */
const CONCURRENT_PARTITIONS = 4;

runService(
  {
    name: 'billing',
    purpose: 'Keeps the ledger: credit, charges, postings, budgets, invoices, and their reconciliation.',
    settings: SETTINGS,
    migrate: ({ DATABASE_URL }) => migrateSchema(DATABASE_URL, MIGRATIONS),
    async start(settings, { takeDown, health }) {
      const { DATABASE_URL: databaseUrl, REDIS_URL: url } = settings;
      const tracer = await openTracer(settings, 'billing');
      takeDown.add('basics', () => tracer?.close());
      const config = new FileConfigSource(settings.TOLLGATE_CONFIG, null);
      const messages = kafkaMessages(settings, 'billing', { concurrentPartitions: CONCURRENT_PARTITIONS });
      const admission = new RedisAdmissionStore({
        url,
        settledReplicas: settings.REDIS_SETTLED_REPLICAS,
        onUnknownTenant: askForCredit(messages),
      });
      takeDown.add('basics', () => config.close());
      takeDown.add(
        'connections',
        () => admission.close(),
        () => messages.close(),
      );
      await Promise.all([checkSchema(databaseUrl, MIGRATIONS), admission.start()]);

      const seams = globalModule([provide(AdmissionStore, admission)]);
      const invoiceCloseDelayMs = settings.TOLLGATE_INVOICE_CLOSE_MINUTES * 60_000;
      const thresholdsPercent = () => config.current.budgets.thresholdsPercent;
      const currency = () => config.current.currency;
      const imports = [
        MessagesModule.of(messages),
        seams,
        BillingModule.register({ databaseUrl, thresholdsPercent, currency, config, invoiceCloseDelayMs, tracer }),
      ];
      const app = await NestFactory.createMicroservice(
        { module: class Billing {}, imports },
        { strategy: new MessagesServer(messages), logger: false, abortOnError: false },
      );
      await app.listen();
      takeDown.add('applications', () => app.close());
      const dataSource = app.get(BillingDataSource, { strict: false });
      health.depend('postgres', { required: true, check: () => query(dataSource, 'SELECT 1') });
      health.depend('kafka', { required: true, check: () => messages.check() });
      // Reconcile and refunds need it.
      health.depend('redis', { required: false, check: () => admission.check() });
    },
  },
  process.argv.slice(2),
);
