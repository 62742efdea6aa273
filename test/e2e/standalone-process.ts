import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { Ready } from './deployment';

const ROOT = resolve(__dirname, '../..');
const READY_TIMEOUT_MS = 120_000;
/**
 * Longer than a stop may take: 30 s to drain, 2 s to cut off, 2 s to publish, and 10 s to flush the books.
 */
const EXIT_TIMEOUT_MS = 60_000;
const STDERR_SHOWN_CHARS = 2_000;

/**
 * A data directory in the system's temporary folder. Processes that still use it are stopped when the test file ends.
 */
export function useDataDirectory(): { path: string } {
  const directory = { path: '' };
  beforeAll(() => {
    directory.path = mkdtempSync(join(tmpdir(), 'tollgate-e2e-'));
  });
  afterAll(async () => {
    await Promise.all(
      [...StandaloneProcess.running]
        .filter((tollgate) => tollgate.dataDirectory?.startsWith(directory.path))
        .map((tollgate) => tollgate.end()),
    );
    await stopPostgres(directory.path);
    rmSync(directory.path, { recursive: true, force: true });
  });
  return directory;
}

/** The real process, `apps/standalone/dist/main.js --json`, on free ports. */
export class StandaloneProcess {
  /** Processes that have not ended yet. */
  static readonly running = new Set<StandaloneProcess>();
  stderr = '';
  stdout = '';
  private constructor(
    readonly child: ChildProcess,
    readonly dataDirectory: string | undefined,
  ) {
    StandaloneProcess.running.add(this);
    child.on('exit', () => StandaloneProcess.running.delete(this));
    child.stdout!.on('data', (chunk: Buffer) => (this.stdout += chunk.toString()));
    child.stderr!.on('data', (chunk: Buffer) => (this.stderr += chunk.toString()));
  }

  static spawn(env: Record<string, string>, args = ['--json']): StandaloneProcess {
    const inherited = Object.fromEntries(
      Object.entries(process.env).filter(([name]) => !/^TOLLGATE_|^DATABASE_URL$|^NODE_OPTIONS$/.test(name)),
    );
    const child = spawn(
      process.execPath,
      ['--enable-source-maps', join(ROOT, 'apps/standalone/dist/main.js'), ...args],
      {
        cwd: ROOT,
        // Most tests need no console, whose libraries take a second of processor time to load, and one process.
        env: { ...inherited, TOLLGATE_PORT: '0', TOLLGATE_CONSOLE: 'false', TOLLGATE_WORKERS: '1', ...env },
        stdio: ['ignore', 'pipe', 'pipe'],
      },
    );
    return new StandaloneProcess(child, env['TOLLGATE_DATA_DIR']);
  }

  /** Spawns and waits for the ready line. Rejects with stderr if it exits instead. */
  static start(env: Record<string, string>): Promise<StandaloneProcess & { ready: Ready }> {
    return StandaloneProcess.spawn(env).becomesReady();
  }

  async becomesReady(): Promise<StandaloneProcess & { ready: Ready }> {
    const until = Date.now() + READY_TIMEOUT_MS;
    while (!this.stdout.includes('\n')) {
      if (this.child.exitCode !== null || this.child.signalCode !== null)
        throw new Error(`it exited (${this.child.exitCode}):\n${this.stderr.slice(-STDERR_SHOWN_CHARS)}`);
      if (Date.now() > until)
        throw new Error(`not ready after ${READY_TIMEOUT_MS} ms:\n${this.stderr.slice(-STDERR_SHOWN_CHARS)}`);
      await new Promise((done) => setTimeout(done, 10));
    }
    return Object.assign(this, { ready: JSON.parse(this.stdout) as Ready });
  }

  /** Sends the signal and waits for the end. Returns the exit code, or null if a signal ended the process. */
  async end(signal: NodeJS.Signals = 'SIGTERM'): Promise<number | null> {
    if (this.child.exitCode === null && this.child.signalCode === null) this.child.kill(signal);
    return this.exited();
  }

  async exited(): Promise<number | null> {
    const until = Date.now() + EXIT_TIMEOUT_MS;
    while (this.child.exitCode === null && this.child.signalCode === null) {
      if (Date.now() > until)
        throw new Error(`still running after ${EXIT_TIMEOUT_MS} ms:\n${this.stderr.slice(-STDERR_SHOWN_CHARS)}`);
      await new Promise((done) => setTimeout(done, 10));
    }
    return this.child.exitCode;
  }
}

/**
 * Ends the embedded server of a data directory whose Node process has ended, as an operator would: with a fast shutdown
 * by its pid file.
 */
export async function stopPostgres(dataDirectory: string): Promise<void> {
  const pid = postgresPid(dataDirectory);
  if (pid === null) return;
  try {
    process.kill(pid, 'SIGINT');
  } catch {
    return; // It has ended already.
  }
  while (postgresPid(dataDirectory) !== null) await new Promise((done) => setTimeout(done, 10));
}

export function postgresPid(dataDirectory: string): number | null {
  const file = join(dataDirectory, 'postgres', 'postmaster.pid');
  if (!existsSync(file)) return null;
  const pid = Number(readFileSync(file, 'utf8').split('\n')[0]);
  try {
    process.kill(pid, 0);
    return pid;
  } catch {
    return null;
  }
}
