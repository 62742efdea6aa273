import '@tollgate/runtime/require-node';
import '@tollgate/runtime/catch-signals';
import '@tollgate/runtime/own-source-maps';
import { kafkaMessages } from '@tollgate/messaging';
import { checkSchema, migrateSchema } from '@tollgate/postgres';
import { delay, FileConfigSource, logger, runService } from '@tollgate/runtime';
import { MIGRATIONS } from './database';
import { createConsoleApp } from './console-app';
import { ConsoleServer } from './http/console-server';
import { optionsOf } from './options';
import { SETTINGS } from './settings';

runService(
  {
    name: 'console',
    purpose: 'Serves the web console: its pages, sign-in, and what they ask of the other services.',
    settings: SETTINGS,
    migrate: ({ DATABASE_URL }) => migrateSchema(DATABASE_URL, MIGRATIONS),
    async start(settings, { takeDown, health }) {
      const { DATABASE_URL: databaseUrl, TOLLGATE_CONSOLE_HOST: host, TOLLGATE_CONSOLE_PORT: port } = settings;
      const config = new FileConfigSource(settings.TOLLGATE_CONFIG, null);
      const messages = kafkaMessages(settings, 'console', { startsWithoutBrokers: true });
      takeDown.add('basics', () => config.close());
      takeDown.add('connections', () => messages.close());
      await checkSchema(databaseUrl, MIGRATIONS);
      const console = await createConsoleApp(
        { messages, config },
        {
          databaseUrl,
          secret: settings.TOLLGATE_CONSOLE_SECRET,
          trustedProxies: settings.TOLLGATE_TRUSTED_PROXIES,
          ...optionsOf(settings),
        },
      );
      takeDown.add('applications', () => console.close());
      health.depend('postgres', { required: true, check: () => console.check() });
      // Without Kafka it still serves its pages and signs people in. What asks other services is `unavailable`.
      health.depend('kafka', { required: false, check: () => messages.check() });
      await messages.start();

      const server = await ConsoleServer.listen(console.handle, host, port);
      takeDown.add('requests', () => {
        // Pages then connect to another replica by themselves.
        console.endStreams();
        return server.close(settings.TOLLGATE_DRAIN_SECONDS * 1_000);
      });
      const origin = settings.TOLLGATE_CONSOLE_URL ?? `http://localhost:${server.port}`;
      const apiOrigin = settings.TOLLGATE_CONSOLE_API_URL ?? origin;
      await console.serveAt(origin, apiOrigin, settings.TOLLGATE_CONSOLE_INNER_API_URL ?? apiOrigin);
      // Reports "not ready" but still serves, so that load balancers notice before any request is refused.
      takeDown.add('announce', () => {
        server.leave();
        return delay(settings.TOLLGATE_LAME_DUCK_SECONDS * 1_000);
      });
      logger('console').info({ publicUrl: server.url, consoleUrl: `${origin}/console` }, 'listening');
    },
  },
  process.argv.slice(2),
);
