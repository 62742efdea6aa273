import { spawn, type ChildProcess } from 'node:child_process';
import { join, resolve } from 'node:path';
import { eventually } from '@tollgate/testing';

const ROOT = resolve(__dirname, '../..');
const READY_TIMEOUT_MS = 90_000;
const EXIT_TIMEOUT_MS = 60_000;
const STDERR_SHOWN_CHARS = 3_000;

export type App = 'gateway' | 'auth' | 'metering' | 'billing' | 'console';

export interface Readiness {
  status: string;
  dependencies: Record<string, { ok: boolean; required: boolean; reason?: string }>;
}

/** Built code of a version: where it is, and settings of its processes. */
export interface Code {
  root: string;
  env: Record<string, string>;
}
const THIS_VERSION: Code = { root: ROOT, env: {} };

/**
 * One service as a process, from `apps/<app>/dist/main.js`, on free ports and without the settings of this process.
 */
export class ServiceProcess {
  stdout = '';
  stderr = '';

  private constructor(
    readonly app: App,
    readonly child: ChildProcess,
    private readonly metricsToken: string | undefined,
  ) {
    child.stdout!.on('data', (chunk: Buffer) => (this.stdout += chunk.toString()));
    child.stderr!.on('data', (chunk: Buffer) => (this.stderr += chunk.toString()));
  }

  static spawn(
    app: App,
    env: Record<string, string>,
    args: readonly string[] = [],
    code: Code = THIS_VERSION,
  ): ServiceProcess {
    const inherited = Object.entries(process.env).filter(
      ([name]) => !/^(TOLLGATE_|KAFKA_|REDIS_|DATABASE_URL|NODE_OPTIONS)/.test(name),
    );
    const main = join(code.root, 'apps', app, 'dist/main.js');
    const child = spawn(process.execPath, ['--enable-source-maps', main, ...args], {
      cwd: code.root,
      env: {
        ...Object.fromEntries(inherited),
        TOLLGATE_HEALTH_PORT: '0',
        TOLLGATE_PORT: '0',
        TOLLGATE_OPERATOR_PORT: '0',
        TOLLGATE_CONSOLE_PORT: '0',
        ...code.env,
        ...env,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    return new ServiceProcess(app, child, env['TOLLGATE_METRICS_TOKEN']);
  }

  get hasEnded(): boolean {
    return this.child.exitCode !== null || this.child.signalCode !== null;
  }

  /** The addresses in its log: the probes' address at once, the others when it serves. */
  get addresses(): { health: string; publicUrl: string; operatorUrl: string; consoleUrl: string } {
    const lines = this.stderr.split('\n').filter((line) => /"msg":"(starting|listening)"/.test(line));
    return Object.assign({}, ...lines.map((line) => JSON.parse(line) as object)) as ReturnType<
      () => typeof this.addresses
    >;
  }

  /** Waits until it is ready. Throws with its stderr if it ends instead. */
  async ready(timeoutMs = READY_TIMEOUT_MS): Promise<this> {
    await eventually(
      async () => {
        if (this.hasEnded) return;
        const { status, dependencies } = await this.readiness();
        if (status !== 'ok') throw new Error(`${this.app} is ${status}: ${JSON.stringify(dependencies)}`);
      },
      { timeoutMs, everyMs: 50 },
    ).catch((error: unknown) => {
      throw new Error(`${String(error)}\n${this.stderr.slice(-STDERR_SHOWN_CHARS)}`, { cause: error });
    });
    if (this.hasEnded)
      throw new Error(`${this.app} ended (${this.child.exitCode}):\n${this.stderr.slice(-STDERR_SHOWN_CHARS)}`);
    return this;
  }

  async readiness(): Promise<Readiness> {
    const { health } = this.addresses;
    if (!health) throw new Error(`${this.app} has not begun yet`);
    return (await (await fetch(`${health}/readyz`)).json()) as Readiness;
  }

  async metrics(): Promise<string> {
    const headers = this.metricsToken === undefined ? {} : { authorization: `Bearer ${this.metricsToken}` };
    return (await fetch(`${this.addresses.health}/metrics`, { headers })).text();
  }

  /** Sends the signal and waits for the end. Returns the exit code, or null if a signal ended it. */
  async end(signal: NodeJS.Signals = 'SIGTERM'): Promise<number | null> {
    if (!this.hasEnded) this.child.kill(signal);
    return this.exited();
  }

  async exited(timeoutMs = EXIT_TIMEOUT_MS): Promise<number | null> {
    await eventually(
      () => {
        if (!this.hasEnded) throw new Error(`${this.app} still runs:\n${this.stderr.slice(-STDERR_SHOWN_CHARS)}`);
      },
      { timeoutMs },
    );
    return this.child.exitCode;
  }
}
