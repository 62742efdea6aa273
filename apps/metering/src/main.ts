import '@tollgate/runtime/require-node';
import '@tollgate/runtime/catch-signals';
import '@tollgate/runtime/own-source-maps';
import { NestFactory } from '@nestjs/core';
import { AdmissionStore, RedisAdmissionStore } from '@tollgate/admission';
import { kafkaMessages } from '@tollgate/messaging';
import { MessagesModule, MessagesServer } from '@tollgate/messaging/nest';
import { checkSchema, migrateSchema, query } from '@tollgate/postgres';
import { FileConfigSource, globalModule, openTracer, provide, runService } from '@tollgate/runtime';
import { MeteringDataSource, MIGRATIONS } from './database';
import { MeteringModule } from './metering.module';
import { SETTINGS } from './settings';

/** Batches of different tenants at the same time. Each is a separate transaction, which locks in sorted order. */
const CONCURRENT_PARTITIONS = 4;

runService(
  {
    name: 'metering',
    purpose: 'Records and rates usage, answers usage queries, and sweeps holds that nobody ends.',
    settings: SETTINGS,
    migrate: ({ DATABASE_URL }) => migrateSchema(DATABASE_URL, MIGRATIONS),
    async start(settings, { takeDown, health }) {
      const { DATABASE_URL: databaseUrl, REDIS_URL: url } = settings;
      const tracer = await openTracer(settings, 'metering');
      takeDown.add('basics', () => tracer?.close());
      // Says what models cost, and where the engines' counters are.
      const config = new FileConfigSource(settings.TOLLGATE_CONFIG, null);
      const messages = kafkaMessages(settings, 'metering', { concurrentPartitions: CONCURRENT_PARTITIONS });
      const admission = new RedisAdmissionStore({ url });
      takeDown.add('basics', () => config.close());
      takeDown.add(
        'connections',
        () => admission.close(),
        () => messages.close(),
      );
      await Promise.all([checkSchema(databaseUrl, MIGRATIONS), admission.start()]);

      const seams = globalModule([provide(AdmissionStore, admission)]);
      const simulatorUrl = settings.TOLLGATE_SIMULATOR_URL;
      const metering = MeteringModule.register({
        databaseUrl,
        config,
        simulatorUrl,
        tracer,
        usageKeptMonths: settings.TOLLGATE_USAGE_KEPT_MONTHS,
      });
      const imports = [MessagesModule.of(messages), seams, metering];
      const app = await NestFactory.createMicroservice(
        { module: class Metering {}, imports },
        { strategy: new MessagesServer(messages), logger: false, abortOnError: false },
      );
      await app.listen();
      takeDown.add('applications', () => app.close());
      const dataSource = app.get(MeteringDataSource, { strict: false });
      health.depend('postgres', { required: true, check: () => query(dataSource, 'SELECT 1') });
      health.depend('kafka', { required: true, check: () => messages.check() });
      // Usage is recorded without it. Only the sweep waits.
      health.depend('redis', { required: false, check: () => admission.check() });
    },
  },
  process.argv.slice(2),
);
