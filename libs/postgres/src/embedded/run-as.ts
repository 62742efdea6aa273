import { execFile, execFileSync } from 'node:child_process';
import { chownSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const SYSTEM_USER = 'postgres';
const COMMAND_TIMEOUT_MS = 60_000;
/**
 * A server process keeps up to 1 MiB of memory that a statement has freed. glibc gives back all above 128 KiB, so each
 * admission would get its memory from the kernel again each time, which is up to a fifth of its time.
 */
const KEPT_MEMORY = { MALLOC_TRIM_THRESHOLD_: String(1024 * 1024) };
/**
 * The variables of this process that PostgreSQL gets. Others may be secrets, and the user of PostgreSQL, who may run
 * other servers too, can read the variables of its processes in /proc.
 */
const PASSED = /^(PATH|TZ|(LD|DYLD|MALLOC|NSS_WRAPPER)_\w+)$/;

/** The user that runs PostgreSQL: the current one, or the system user `postgres`, because PostgreSQL refuses root. */
export interface ServerUser {
  /**
   * Runs a program of PostgreSQL to its end. Rejects with its output. It runs in its own session, so Ctrl-C in this
   * terminal does not reach it.
   */
  run(program: string, args: readonly string[]): Promise<string>;
  own(path: string): void;
  /** Throws if the folder of a cluster belongs to another user, as after a copy that kept no owners. */
  refuseUnowned(cluster: string): void;
}

/** @param paths files and folders that the server must reach */
export function serverUser(paths: readonly string[]): ServerUser {
  if (process.getuid?.() !== 0) {
    // PostgreSQL itself refuses the folder of another user, and says so.
    return { run: (program, args) => exec(program, args), own: () => {}, refuseUnowned: () => {} };
  }
  const { uid, gid } = systemUser();
  // Below a folder that only root may enter (a checkout in /root, a `mktemp -d`), the server needs one capability to
  // pass through it.
  const reachable = paths.every(isReachableByAll);
  return {
    run: (program, args) =>
      reachable
        ? exec(program, args, { uid, gid })
        : exec('setpriv', [
            `--reuid=${uid}`,
            `--regid=${gid}`,
            '--clear-groups',
            '--inh-caps=+dac_read_search',
            '--ambient-caps=+dac_read_search',
            program,
            ...args,
          ]),
    own: (path) => chownSync(path, uid, gid),
    refuseUnowned: (cluster) => {
      if (statSync(cluster).uid !== uid)
        throw new Error(
          `${cluster} does not belong to the user "${SYSTEM_USER}", which runs PostgreSQL. ` +
            `Run: chown -R ${SYSTEM_USER}: ${cluster}`,
        );
    },
  };
}

async function exec(
  program: string,
  args: readonly string[],
  identity: { uid?: number; gid?: number } = {},
): Promise<string> {
  const passed = Object.fromEntries(Object.entries(process.env).filter(([name]) => PASSED.test(name)));
  try {
    const { stdout } = await run(program, [...args], {
      ...identity,
      cwd: '/',
      timeout: COMMAND_TIMEOUT_MS,
      env: { ...KEPT_MEMORY, ...passed, LC_ALL: 'C' },
    });
    return stdout;
  } catch (error) {
    const { stdout = '', stderr = '', message } = error as { stdout?: string; stderr?: string; message: string };
    throw new Error(`${stderr}${stdout}`.trim() || message, { cause: error });
  }
}

function systemUser(): { uid: number; gid: number } {
  try {
    return { uid: idOf('-u'), gid: idOf('-g') };
  } catch {
    try {
      execFileSync('useradd', ['--system', '--no-create-home', '--shell', '/usr/sbin/nologin', SYSTEM_USER], {
        stdio: 'pipe',
      });
      return { uid: idOf('-u'), gid: idOf('-g') };
    } catch (error) {
      throw new Error(
        `PostgreSQL does not run as root, and the system user "${SYSTEM_USER}" could not be created: ` +
          'start Tollgate as another user, or set DATABASE_URL to a server.',
        { cause: error },
      );
    }
  }
}

function idOf(flag: '-u' | '-g'): number {
  return Number(execFileSync('id', [flag, SYSTEM_USER], { stdio: 'pipe' }).toString());
}

function isReachableByAll(path: string): boolean {
  for (let current = path; ; current = dirname(current)) {
    const info = statSync(current, { throwIfNoEntry: false });
    // The server's own folder may be inaccessible to others.
    if (info?.isDirectory() && current !== path && (info.mode & 0o001) === 0) return false;
    if (current === dirname(current)) return true;
  }
}
