import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ServerUser } from './run-as';

/** The superuser of the server. */
export const USER = 'postgres';

/** Built beside its final place and moved when complete, so a crash leaves no incomplete cluster. */
export async function createCluster(root: string, cluster: string, initdb: string, user: ServerUser): Promise<void> {
  const draft = join(root, `postgres.new-${randomBytes(4).toString('hex')}`);
  const passwordFile = join(root, 'postgres.password');
  const passwordCopy = `${draft}.password`;
  try {
    // Never overwritten, because another process may set up the same directory.
    if (!existsSync(passwordFile))
      writeFileSync(passwordFile, randomBytes(24).toString('base64url'), { mode: 0o600, flag: 'wx' });
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
    throw new Error(`PostgreSQL could not set up ${cluster}: ${(error as Error).message}`, { cause: error });
  } finally {
    rmSync(passwordCopy, { force: true });
  }
}

export function usedBy(root: string): string {
  return `Another Tollgate runs on ${root}: stop it, or give this one a directory of its own with TOLLGATE_DATA_DIR.`;
}
