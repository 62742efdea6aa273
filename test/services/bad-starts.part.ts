import { createServer } from 'node:net';
import { Client } from 'pg';
import { useRedis, withDatabase } from '@tollgate/testing';
import { tooOldServer } from './too-old-server';
import { KAFKA_USER, type Deployment } from './deployment';
import { ALL, expectRefusals, WITH_DATABASE } from './refusals';
import type { App } from './service-process';

/** Runs SQL as the superuser. */
async function sql(url: string, ...statements: string[]): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    for (const statement of statements) await client.query(statement);
  } finally {
    await client.end();
  }
}

/** Services that cannot start. Each must report the reason in one line and end. */
export function badStartsTests(deployment: Deployment): void {
  /** For a client, this server looks like an old version without functions. */
  const withoutFunctions = useRedis({ args: ['--rename-command', 'FUNCTION', ''] });

  /** Starts each of these services with wrong settings in place of valid ones. */
  const refused = (apps: readonly App[], env: Record<string, string>, line: RegExp | ((app: App) => RegExp)) =>
    expectRefusals(
      apps.map((app) => deployment.spawn(app, env)),
      line,
    );

  // A gateway waits for brokers that do not answer (come-and-go.part.ts).
  describe('if Kafka', () => {
    it('does not answer', () =>
      refused(
        WITH_DATABASE,
        { KAFKA_BROKERS: '127.0.0.1:1' },
        /^tollgate: Kafka cannot be used at 127\.0\.0\.1:1 .*ECONNREFUSED.*: check KAFKA_BROKERS/,
      ));

    it('has an unknown host', () =>
      refused(['auth'], { KAFKA_BROKERS: 'kafka.invalid:9092' }, /kafka\.invalid.*check KAFKA_BROKERS/));

    it('refuses the password', () =>
      refused(
        ALL,
        {
          KAFKA_BROKERS: deployment.kafka.securedBrokers.join(),
          KAFKA_SASL_MECHANISM: 'plain',
          KAFKA_USERNAME: KAFKA_USER.name,
          KAFKA_PASSWORD: 'not-to-be-shown',
        },
        new RegExp(
          '^tollgate: Kafka at 127\\.0\\.0\\.1:\\d+ .* refuses the user: (?!.*not-to-be-shown).*: ' +
            'correct KAFKA_USERNAME, KAFKA_PASSWORD or KAFKA_SASL_MECHANISM$',
        ),
      ));

    it('expects a user', () =>
      refused(
        ['auth'],
        { KAFKA_BROKERS: deployment.kafka.securedBrokers.join() },
        /\(without TLS, without a user\).* check KAFKA_BROKERS, KAFKA_TLS and KAFKA_SASL_MECHANISM/,
      ));

    it('expects no user', () =>
      refused(
        ['metering'],
        { KAFKA_SASL_MECHANISM: 'plain', KAFKA_USERNAME: 'tollgate', KAFKA_PASSWORD: 'not-to-be-shown' },
        new RegExp(
          '\\(without TLS, as "tollgate" by plain\\).* ' +
            'check KAFKA_BROKERS, KAFKA_TLS and KAFKA_SASL_MECHANISM(?!.*not-to-be-shown)',
        ),
      ));

    it('does not use TLS', () =>
      refused(['billing'], { KAFKA_TLS: 'true' }, /\(with TLS, without a user\).* check KAFKA_BROKERS, KAFKA_TLS/));

    it('lacks the topics', () =>
      refused(ALL, { KAFKA_TOPIC_PREFIX: 'other.' }, /missing: "other\.[a-z.-]+", .*tollgate topics apply/));
  });

  describe('if Redis', () => {
    const redisCli = (...command: string[]) => ['redis-cli', '-p', String(deployment.redis.port), ...command];

    it('does not answer', () =>
      refused(
        ALL,
        { REDIS_URL: 'redis://127.0.0.1:1' },
        new RegExp(
          '^tollgate: REDIS_URL \\(redis://127\\.0\\.0\\.1:1\\): Redis does not answer.*' +
            'start it, or correct the address\\.$',
        ),
      ));

    it('refuses the password', () =>
      refused(
        ALL,
        { REDIS_URL: deployment.redis.url.replace('://', '://services:wrong@') },
        /^tollgate: REDIS_URL \(redis:\/\/127\.0\.0\.1:\d+\): Redis refuses this user and password: WRONGPASS/,
      ));

    it('lacks our functions and forbids loading them', async () => {
      await deployment.redis.exec(redisCli('FUNCTION', 'FLUSH'));
      await deployment.redis.exec(redisCli('ACL', 'SETUSER', 'weak', 'on', '>weak', '~*', '&*', '+@all', '-function'));
      const url = deployment.redis.url.replace('://', '://weak:weak@');
      await refused(
        ALL,
        { REDIS_URL: url },
        /Redis lacks our functions, and the user lacks rights to load them: let `tollgate redis load --keep` run/,
      );
    });

    it.each([
      ['tga', ['auth', 'gateway'] as const],
      ['tgc', ['billing', 'gateway', 'metering'] as const],
    ])('grants only the keys %s:*', async (prefix, apps) => {
      const rights = [`~${prefix}:*`, '&*', '+@all', '-@admin', '-@dangerous', '+function', '+info'];
      await deployment.redis.exec(redisCli('ACL', 'SETUSER', prefix, 'on', '>weak', ...rights));
      const url = deployment.redis.url.replace('://', `://${prefix}:weak@`);
      await refused(
        apps,
        { REDIS_URL: url },
        /the user lacks rights \(.*NOPERM.*\): `tollgate redis rights` shows what /,
      );
    });

    it('has no functions, like versions before 7', () =>
      refused(
        ALL,
        { REDIS_URL: withoutFunctions.url },
        /this server has no Functions: Redis 7\.0 or newer is needed\.$/,
      ));
  });

  describe('if PostgreSQL', () => {
    it('does not answer', () =>
      refused(
        [...WITH_DATABASE, 'console'],
        { DATABASE_URL: 'postgres://tollgate:not-to-be-shown@127.0.0.1:1/tollgate' },
        /^tollgate: No PostgreSQL answers at 127\.0\.0\.1:1\/tollgate: start it, or correct DATABASE_URL\.$/,
      ));

    it('refuses the password', () =>
      refused(
        WITH_DATABASE,
        { DATABASE_URL: deployment.postgres.url.replace(':tollgate@', ':not-to-be-shown@') },
        /^tollgate: PostgreSQL at 127\.0\.0\.1:\d+\/tollgate refuses the password of DATABASE_URL\.$/,
      ));

    it('does not use TLS', () =>
      refused(
        WITH_DATABASE,
        { DATABASE_URL: `${deployment.postgres.url}?sslmode=verify-full` },
        new RegExp(
          '^tollgate: PostgreSQL at 127\\.0\\.0\\.1:\\d+/tollgate does not support TLS: ' +
            'leave sslmode out of DATABASE_URL, or set up TLS there\\.$',
        ),
      ));

    it('lacks the database', () =>
      refused(
        ['metering'],
        { DATABASE_URL: withDatabase(deployment.postgres.url, 'nowhere') },
        /nowhere has no such database: create it, or correct DATABASE_URL\.$/,
      ));

    it('is too old', async () => {
      const old = await tooOldServer(deployment.postgres.port);
      const url = deployment.postgres.url.replace(`:${deployment.postgres.port}/`, `:${old.port}/`);
      await refused(
        WITH_DATABASE,
        { DATABASE_URL: url },
        /^tollgate: PostgreSQL 15\S*.* is too old: Tollgate needs 16 or newer at DATABASE_URL\.$/,
      );
      await old.close();
    });

    it('lacks the schemas, or has older or newer ones', async () => {
      const url = withDatabase(deployment.postgres.url, 'behind');
      await sql(deployment.postgres.url, 'CREATE DATABASE behind');
      const behind = { DATABASE_URL: url };
      await refused(
        WITH_DATABASE,
        behind,
        (app) => new RegExp(`^tollgate: The schema "${app}" is not there: run .* --migrate`),
      );
      await Promise.all(
        WITH_DATABASE.map(async (app) => {
          const migrated = deployment.spawn(app, behind, ['--migrate']);
          expect([await migrated.exited(), migrated.stdout]).toEqual([
            0,
            expect.stringMatching(new RegExp(`^The schema "${app}" was migrated: 001`)),
          ]);
        }),
      );
      const older: App[] = ['auth', 'billing']; // Metering has only one migration.
      const last = (app: App) =>
        `DELETE FROM ${app}.schema_migration WHERE number = (SELECT max(number) FROM ${app}.schema_migration)`;
      await sql(url, ...older.map(last));
      await refused(
        older,
        behind,
        (app) => new RegExp(`^tollgate: The schema "${app}" is 1 migration behind .* --migrate`),
      );
      await sql(
        url,
        ...WITH_DATABASE.map((app) => `INSERT INTO ${app}.schema_migration VALUES (900, 'later.sql', '')`),
      );
      await refused(
        WITH_DATABASE,
        behind,
        (app) => new RegExp(`^tollgate: The schema "${app}" was migrated by a newer version of Tollgate`),
      );
    });
  });

  describe('if a port', () => {
    it('is in use', async () => {
      const server = createServer();
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      const port = String((server.address() as { port: number }).port);
      const inUse = [
        ['gateway', 'TOLLGATE_PORT'],
        ['gateway', 'TOLLGATE_OPERATOR_PORT'],
        ['gateway', 'TOLLGATE_HEALTH_PORT'],
        ['metering', 'TOLLGATE_HEALTH_PORT'],
        ['console', 'TOLLGATE_CONSOLE_PORT'],
      ] as const;
      for (const [app, setting] of inUse) {
        await refused(
          [app],
          // No client is served yet, so the service does not wait for load balancers.
          { [setting]: port, TOLLGATE_LAME_DUCK_SECONDS: '300' },
          new RegExp(`^tollgate: Port ${port} on 127\\.0\\.0\\.1 is in use: .* set ${setting} `),
        );
      }
      await new Promise((resolve) => server.close(resolve));
    });
  });
}
