import { logger } from '@tollgate/runtime';
import { Client } from 'undici';
import type { Backend, CatalogModel } from '../../catalog/catalog';
import { connectorFor } from './connections';
import { accessOf, type Engine, type Fleet } from './fleet';

/** Checks in a row that make a backend unhealthy. One that succeeds makes it healthy again. */
const FAILURES_IN_A_ROW = 2;
const MAX_TIMEOUT_MS = 5_000;
const MAX_ANSWER_BYTES = 128 * 1024;

/** Asks backends at intervals whether they can serve (`health` in `tollgate.yaml`). Each process asks for itself. */
export class HealthChecks {
  /** By `checkKey`. */
  private readonly checks = new Map<string, EngineCheck>();
  private readonly onHealthy = () => this.fleet.recheck();

  constructor(private readonly fleet: Fleet) {}

  /** Checks the backends of these models from now on, and no others. */
  follow(models: readonly CatalogModel[]): void {
    const wanted = new Map<string, Backend>();
    for (const backend of models.flatMap(({ backends }) => backends))
      if (backend.health) wanted.set(checkKey(backend), backend);
    const left = [...this.checks].filter(([key]) => !wanted.has(key));
    for (const [key, backend] of wanted) {
      if (this.checks.has(key)) continue;
      // Its key or its headers may have changed. Then only an answer changes its health.
      const at = left.findIndex(([, check]) => isSamePlace(check.backend, backend));
      const [former] = at < 0 ? [] : left.splice(at, 1);
      if (former) {
        this.checks.delete(former[0]);
        former[1].goOnWith(backend);
      }
      const check = former?.[1] ?? new EngineCheck(backend, this.fleet.engineOf(backend.name), this.onHealthy);
      this.checks.set(key, check);
    }
    for (const [key, check] of left) {
      check.stop();
      this.checks.delete(key);
    }
  }

  close(): void {
    this.follow([]);
  }
}

/** Never logged: it has the key. */
function checkKey(backend: Backend): string {
  return JSON.stringify([backend.name, accessOf(backend), backend.health]);
}

/** The backends have the same URL, connections and check. Their keys and headers may differ. */
function isSamePlace(one: Backend, other: Backend): boolean {
  const [a, b] = [one, other].map(({ name, connectionKey, health }) => JSON.stringify([name, connectionKey, health]));
  return a === b;
}

class EngineCheck {
  private readonly client: Client;
  private readonly timer: NodeJS.Timeout;
  /** From the beginning of a check to the end of its answer. */
  private readonly timeoutMs: number;
  private failures = 0;
  private running = false;
  /** Whom it is for: see `accessOf`. */
  access: string;

  /** @param backend as the configuration in force describes it */
  constructor(
    public backend: Backend,
    private readonly engine: Engine,
    private readonly onHealthy: () => void,
  ) {
    const { intervalMs } = backend.health!;
    this.access = accessOf(backend);
    this.timeoutMs = Math.min(intervalMs, MAX_TIMEOUT_MS);
    this.client = new Client(backend.origin, { connect: connectorFor(backend, this.timeoutMs), allowH2: false });
    this.timer = setInterval(() => void this.check(), intervalMs).unref();
    void this.check();
  }

  /** Another key or other headers. */
  goOnWith(backend: Backend): void {
    this.backend = backend;
    this.access = accessOf(backend);
  }

  stop(): void {
    clearInterval(this.timer);
    void this.client.destroy();
    // Without checks, the backend counts as healthy.
    if (this.engine.failingChecks.delete(this)) this.onHealthy();
  }

  private async check(): Promise<void> {
    if (this.running) return;
    this.running = true;
    const reason = await this.ask();
    this.running = false;
    if (this.client.destroyed) return;
    if (reason === null) return this.succeeded();
    this.failures += 1;
    const { failingChecks } = this.engine;
    if (this.failures < FAILURES_IN_A_ROW || failingChecks.has(this)) return;
    failingChecks.add(this);
    logger('gateway').warn(
      { backend: this.engine.name, reason },
      'a backend is unhealthy: it is called only as a last resort',
    );
  }

  private succeeded(): void {
    this.failures = 0;
    if (!this.engine.failingChecks.delete(this)) return;
    logger('gateway').info({ backend: this.engine.name }, 'a backend is healthy again');
    this.onHealthy();
  }

  /** Why it is not healthy, or null. */
  private async ask(): Promise<string | null> {
    const { health, headers, authorization } = this.backend;
    const all = authorization === null ? [...headers] : ['authorization', authorization, ...headers];
    const signal = AbortSignal.timeout(this.timeoutMs);
    try {
      const { path } = health!;
      const { statusCode, body } = await this.client.request({ path, method: 'GET', headers: all, signal });
      // A longer answer is cut off, and its status counts.
      await body.dump({ limit: MAX_ANSWER_BYTES, signal });
      const isHealthy = health!.isStrict ? statusCode >= 200 && statusCode < 300 : statusCode < 500;
      return isHealthy ? null : `status ${statusCode}`;
    } catch (error) {
      // A DOMException has a number.
      const { code, name } = error as Error & { code?: unknown };
      return typeof code === 'string' ? code : name;
    }
  }
}
