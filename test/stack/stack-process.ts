import { execFile, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join, resolve } from 'node:path';

const ROOT = resolve(__dirname, '../..');
const MAX_OUTPUT_BYTES = 64 * 1024 * 1024;

export const BACKEND_KEY = 'sk-of-a-backend-4711-not-to-be-shown';
const GUARDED_MODEL = `  - id: guarded
    kind: chat
    contextTokens: 1024
    maxOutputTokens: 512
    price: { input: '0', output: '0' }
    backends: [{ url: 'http://backend.invalid/v1', apiKey: '\${STACK_TEST_BACKEND_KEY}' }]
`;

/** What a start with --json prints. */
export interface Ready {
  inferenceUrl: string;
  managementUrl: string;
  operatorUrl: string;
  docsUrl: string;
  operatorSecret: string;
  console: { url: string; firstOperatorLink: string | null };
  demo?: { tenantId: string; key: string; token: string };
}

export interface Ended {
  code: number | null;
  stdout: string;
  stderr: string;
}

/**
 * `npm run stack` for the tests, with its own project, ports and data directory, so that it touches no other stack.
 */
export class Stack {
  readonly project = `tollgate-stack-test-${process.pid}`;
  readonly dataDirectory = mkdtempSync(join(tmpdir(), 'tollgate-stack-'));
  private readonly env: Record<string, string> = {
    COMPOSE_PROJECT_NAME: this.project,
    COMPOSE_FILE: [join(ROOT, 'docker-compose.yml'), join(__dirname, 'stack.yml')].join(delimiter),
    // The images of this checkout, not of another one on the same machine.
    TOLLGATE_TAG: `test-${createHash('sha256').update(ROOT).digest('hex').slice(0, 8)}`,
    TOLLGATE_PORT: '0',
    TOLLGATE_DATA_DIR: this.dataDirectory,
    TOLLGATE_LAME_DUCK_SECONDS: '1',
    TOLLGATE_CONFIG: this.writeConfig(),
    STACK_TEST_BACKEND_KEY: BACKEND_KEY,
  };

  up(args: string[] = [], env: Record<string, string> = {}): Promise<Ended> {
    return this.node([join(ROOT, 'tools/stack/stack.mjs'), 'up', ...args], env);
  }

  down(args: string[] = []): Promise<Ended> {
    return this.node([join(ROOT, 'tools/stack/stack.mjs'), 'down', ...args]);
  }

  /**
   * The texts that must never be shown: each file in the directory of secrets, by its name, and the key that
   * tollgate.yaml names.
   */
  secrets(): [name: string, value: string][] {
    const directory = join(this.dataDirectory, 'secrets');
    const files = readdirSync(directory).flatMap((name) => {
      const lines_ = lines(readFileSync(join(directory, name), 'utf8'));
      return lines_.map((line): [string, string] => [name, line]);
    });
    return [...files, ['backend key', BACKEND_KEY]];
  }

  secret(name: string): string {
    return readFileSync(join(this.dataDirectory, 'secrets', name), 'utf8').trim();
  }

  /** The `tollgate` command of this checkout, which finds the stack by its data directory. */
  async tollgate<T>(...args: string[]): Promise<T> {
    const { stdout, stderr } = await this.node([join(ROOT, 'apps/cli/dist/main.js'), ...args, '--json']);
    if (stdout === '') throw new Error(stderr);
    return JSON.parse(stdout) as T;
  }

  compose(...args: string[]): Promise<string> {
    return docker('compose', '--env-file', join(this.dataDirectory, 'stack.env'), ...args);
  }

  /** Ids of the running containers of a service. */
  async containers(service: string): Promise<string[]> {
    return lines(
      await docker(
        'ps',
        '--quiet',
        '--no-trunc',
        ...this.mine(),
        '--filter',
        `label=com.docker.compose.service=${service}`,
      ),
    );
  }

  /** The address of each container in each of its networks, by service. */
  async addresses(): Promise<Map<string, string[]>> {
    const found = new Map<string, string[]>();
    for (const { Config: config, NetworkSettings: settings } of JSON.parse(
      await docker('inspect', ...(await this.all())),
    )) {
      const service = String(config.Labels['com.docker.compose.service']);
      const networks: { IPAddress: string }[] = Object.values(settings.Networks);
      const own = networks.flatMap(({ IPAddress: address }) => (address === '' ? [] : address));
      found.set(service, [...(found.get(service) ?? []), ...own]);
    }
    return found;
  }

  /** Ids of all containers, including those that have ended. */
  async all(): Promise<string[]> {
    return lines(await docker('ps', '--all', '--quiet', '--no-trunc', ...this.mine()));
  }

  /** The remaining containers, networks and volumes of the project. */
  async remains(): Promise<string[]> {
    const found = await Promise.all([
      docker('ps', '--all', '--quiet', ...this.mine()),
      docker('network', 'ls', '--quiet', ...this.mine()),
      docker('volume', 'ls', '--quiet', ...this.mine()),
    ]);
    return found.flatMap(lines);
  }

  async remove(): Promise<void> {
    await this.down(['--volumes']);
    rmSync(this.dataDirectory, { recursive: true, force: true });
  }

  /** The shipped configuration, with a model whose backend needs a key. */
  private writeConfig(): string {
    const file = join(this.dataDirectory, 'tollgate.yaml');
    const shipped = readFileSync(join(ROOT, 'tollgate.yaml'), 'utf8');
    writeFileSync(file, shipped.replace(/^plans:$/m, `${GUARDED_MODEL}plans:`));
    return file;
  }

  private readonly mine = (): string[] => ['--filter', `label=com.docker.compose.project=${this.project}`];

  private async node(args: string[], env: Record<string, string> = {}): Promise<Ended> {
    const child = spawn(process.execPath, args, { cwd: ROOT, env: { ...process.env, ...this.env, ...env } });
    const ended: Ended = { code: null, stdout: '', stderr: '' };
    child.stdout.on('data', (chunk) => (ended.stdout += String(chunk)));
    child.stderr.on('data', (chunk) => (ended.stderr += String(chunk)));
    ended.code = await new Promise((done) => child.once('close', done));
    return ended;
  }
}

/** The output of a docker command. Rejects if it fails. */
export function docker(...args: string[]): Promise<string> {
  return new Promise((done, failed) => {
    execFile('docker', args, { cwd: ROOT, maxBuffer: MAX_OUTPUT_BYTES }, (error, stdout, stderr) =>
      error ? failed(new Error(`docker ${args.join(' ')}: ${stderr}`)) : done(stdout.trim()),
    );
  });
}

const lines = (text: string): string[] => text.split('\n').filter((line) => line !== '');
