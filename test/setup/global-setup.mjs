// Starts one real PostgreSQL for the whole run, with a migrated template that each test file clones. With
// TOLLGATE_TEST_DATABASE_URL set, it uses that server instead.
import { mkdtemp } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { compileStale } from '../../tools/setup/prepare.mjs';
import { prepareDocker } from './docker.mjs';
import { MIGRATIONS } from './migrations.mjs';

export default async function globalSetup() {
  // Tests start many processes that load the same files, and compiling them takes a third of a start.
  process.env.NODE_COMPILE_CACHE ??= join(tmpdir(), 'tollgate-compile-cache');
  prepareDocker();
  // So that the black-box tests start the current sources.
  await compileStale();
  const { startEmbeddedPostgres, migrate } = createRequire(import.meta.url)('../../libs/postgres/dist/index.js');
  const given = process.env.TOLLGATE_TEST_DATABASE_URL;
  let url = given;
  if (!given) {
    const dataDirectory = await mkdtemp(join(tmpdir(), 'tollgate-test-'));
    // fsync off, because these tests kill processes but never the machine.
    const server = await startEmbeddedPostgres({ dataDirectory, settings: { fsync: 'off', max_connections: '300' } });
    globalThis.__tollgateTestServer = { server, dataDirectory };
    url = server.url;
  }
  const { Client } = createRequire(import.meta.url)('pg');
  const client = new Client({ connectionString: url });
  await client.connect();
  await client.query('DROP DATABASE IF EXISTS tollgate_template WITH (FORCE)');
  await client.query('CREATE DATABASE tollgate_template');
  await client.end();
  const template = url.replace(/^(postgres(?:ql)?:\/\/[^/]*\/)[^?]*/, '$1tollgate_template');
  for (const { schema, directory, functions } of MIGRATIONS)
    await migrate({
      url: template,
      schema,
      directory: resolve(directory),
      ...(functions && { functions: resolve(functions) }),
    });
  process.env.TOLLGATE_TEST_DATABASE_URL = url;
}
