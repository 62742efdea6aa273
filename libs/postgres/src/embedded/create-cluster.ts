import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { writeNewFile } from '@tollgate/runtime';
import type { ServerUser } from './run-as';

/** An empty cluster, and its first WAL. */
const NEEDED_MB = 200;
/** By Node or by a program of PostgreSQL. */
const FULL_DISK = /\b(ENOSPC|EDQUOT|No space left on device|Disk quota exceeded)\b/;

/** The superuser of the server. */
export const USER = 'postgres';

/** Built beside its final place and moved when complete, so a crash leaves no incomplete cluster. */
export async function createCluster(root: string, cluster: string, initdb: string, user: ServerUser): Promise<void> {
  const draft = join(root, `postgres.new-${randomBytes(4).toString('hex')}`);
  const passwordFile = join(root, 'postgres.password');
  const passwordCopy = `${draft}.password`;
  try {
    // Never overwritten, because another process may set up the same directory.
    if (!existsSync(passwordFile)) writeNewFile(passwordFile, randomBytes(24).toString('base64url'));
    mkdirSync(draft, { mode: 0o700 });
    writeFileSync(passwordCopy, readFileSync(passwordFile), { mode: 0o600 });
    user.own(draft);
    user.own(passwordCopy);
    await user.run(initdb, [
      '-D',
      draft,
      '-U',
      USER,
      '--auth=scram-sha-256',
      `--pwfile=${passwordCopy}`,
      '-E',
      'UTF8',
      '--locale=C',
      '--no-instructions',
    ]);
    renameSync(draft, cluster);
  } catch (error) {
    rmSync(draft, { recursive: true, force: true });
    const isShared = (error as NodeJS.ErrnoException).code === 'EEXIST' || existsSync(join(cluster, 'PG_VERSION'));
    if (isShared) throw new Error(usedBy(root), { cause: error });
    throw new Error(whyNotCreated(root, cluster, error as NodeJS.ErrnoException), { cause: error });
  } finally {
    rmSync(passwordCopy, { force: true });
  }
}

/** The message when a cluster could not be created. The output of initdb has 20 lines. */
export function whyNotCreated(root: string, cluster: string, { code, message }: NodeJS.ErrnoException): string {
  const full = FULL_DISK.exec(`${code}: ${message}`)?.[0];
  if (full === undefined) return `PostgreSQL could not set up ${cluster}: ${message}`;
  const problem = /quota|EDQUOT/i.test(full) ? 'disk quota is used up' : 'disk is full';
  return (
    `PostgreSQL could not be set up in the data directory ${root}, because its ${problem}: free at least ` +
    `${NEEDED_MB} MB there, or choose another with TOLLGATE_DATA_DIR.`
  );
}

export function usedBy(root: string): string {
  return `Another Tollgate runs on ${root}: stop it, or give this one a directory of its own with TOLLGATE_DATA_DIR.`;
}
