import { rmSync, writeFileSync } from 'node:fs';
import { admissionLibrary } from '@tollgate/admission';
import { credentialsLibrary } from '@tollgate/credentials';
import { aclLine, LibraryKeeper, REDIS_RIGHTS, REDIS_USERS, RedisSettings, type RedisUser } from '@tollgate/redis';
import { configureLogging, logger, readSettings, SettingsError } from '@tollgate/runtime';
import { Failure, UsageFailure } from '../command/failure';
import type { Output } from '../command/output';

function findRedis(env: NodeJS.ProcessEnv): string {
  try {
    return readSettings(env, [RedisSettings]).REDIS_URL;
  } catch (error) {
    if (error instanceof SettingsError) throw new UsageFailure(error.message);
    throw error;
  }
}

function showRights(user: string | undefined, output: Output): void {
  if (user !== undefined && !REDIS_USERS.includes(user as RedisUser))
    throw new UsageFailure(`There is no user "${user}"; there are ${REDIS_USERS.join(', ')}.`);
  const users = user === undefined ? REDIS_USERS : [user as RedisUser];
  const lines = users.map((name) => aclLine(name, '>PASSWORD'));
  output.answer(
    users.map((name, index) => ({ user: name, rights: REDIS_RIGHTS[name], acl: lines[index] })),
    lines.join('\n'),
  );
}

const keeperAt = (url: string) => new LibraryKeeper({ url, libraries: [admissionLibrary(), credentialsLibrary()] });

async function loadAll(keeper: LibraryKeeper): Promise<void> {
  await keeper.load().catch((error: Error) => {
    throw new Failure(error.message, 'functions_not_loaded');
  });
}

async function loadFunctions(url: string, output: Output): Promise<void> {
  configureLogging({ level: 'silent', pretty: false });
  const keeper = keeperAt(url);
  try {
    await loadAll(keeper);
  } finally {
    keeper.close();
  }
  output.answer({ ok: true }, 'Redis has all functions.');
}

/** Until a signal ends it. */
async function keepFunctions(url: string, readyFile: string | undefined): Promise<void> {
  configureLogging({ level: 'info', pretty: process.stderr.isTTY });
  // A restarted container may still have the file of its former run.
  if (readyFile !== undefined) rmSync(readyFile, { force: true });
  const stop = new AbortController();
  for (const signal of ['SIGTERM', 'SIGINT']) process.once(signal, () => stop.abort());
  const keeper = keeperAt(url);
  try {
    await loadAll(keeper);
    logger('functions').info('Redis has all functions');
    if (readyFile !== undefined) writeFileSync(readyFile, '');
    await keeper.keep(stop.signal);
  } finally {
    keeper.close();
  }
}

/** As one value: Node finds a single export of a compiled module by its name. */
export const redisTools = { findRedis, showRights, loadFunctions, keepFunctions };
