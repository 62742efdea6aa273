import '@tollgate/runtime/require-node';
import '@tollgate/runtime/catch-signals';
import '@tollgate/runtime/own-source-maps';
import { NestFactory } from '@nestjs/core';
import { CredentialStore, RedisCredentialStore } from '@tollgate/credentials';
import { kafkaMessages } from '@tollgate/messaging';
import { MessagesModule, MessagesServer } from '@tollgate/messaging/nest';
import { checkSchema, migrateSchema, query } from '@tollgate/postgres';
import { ConfigSource, FileConfigSource, globalModule, provide, runService } from '@tollgate/runtime';
import { AuthModule } from './auth.module';
import { AuthDataSource, MIGRATIONS } from './database';
import { SETTINGS } from './settings';

runService(
  {
    name: 'auth',
    purpose: 'Keeps tenants, inference keys and management tokens, and projects them to Redis.',
    settings: SETTINGS,
    migrate: ({ DATABASE_URL }) => migrateSchema(DATABASE_URL, MIGRATIONS),
    async start(settings, { takeDown, health }) {
      const { DATABASE_URL: databaseUrl, REDIS_URL: url } = settings;
      const config = new FileConfigSource(settings.TOLLGATE_CONFIG, null);
      const credentials = new RedisCredentialStore({ url });
      const messages = kafkaMessages(settings, 'auth');
      takeDown.add('basics', () => config.close());
      takeDown.add(
        'connections',
        () => credentials.close(),
        () => messages.close(),
      );
      await Promise.all([checkSchema(databaseUrl, MIGRATIONS), credentials.start()]);

      const seams = globalModule([provide(CredentialStore, credentials), provide(ConfigSource, config)]);
      const imports = [MessagesModule.of(messages), seams, AuthModule.register({ databaseUrl })];
      const app = await NestFactory.createMicroservice(
        { module: class Auth {}, imports },
        { strategy: new MessagesServer(messages), logger: false, abortOnError: false },
      );
      await app.listen();
      takeDown.add('applications', () => app.close());
      const dataSource = app.get(AuthDataSource, { strict: false });
      health.depend('postgres', { required: true, check: () => query(dataSource, 'SELECT 1') });
      health.depend('kafka', { required: true, check: () => messages.check() });
      // Changes made while Redis is down are projected when it is back.
      health.depend('redis', { required: false, check: () => credentials.check() });
    },
  },
  process.argv.slice(2),
);
