import { logger } from '@tollgate/runtime';
import { Client } from 'undici';
import type { Backend, CatalogModel } from '../../catalog/catalog';
import { connectorFor } from './connections';
import type { Engine, Fleet } from './fleet';

/** Checks in a row that make a backend unhealthy. One that succeeds makes it healthy again. */
const FAILURES_IN_A_ROW = 2;
const MAX_TIMEOUT_MS = 5_000;

/** Asks backends at intervals whether they can serve (`health` in `tollgate.yaml`). Each process asks for itself. */
export class HealthChecks {
  private readonly checks = new Map<string, EngineCheck>();

  constructor(private readonly fleet: Fleet) {}

  /** Checks the backends of these models from now on, and no others. */
  follow(models: readonly CatalogModel[]): void {
    const wanted = new Map<string, Backend>();
    for (const backend of models.flatMap(({ backends }) => backends))
      if (backend.health)
        wanted.set(`${backend.name} ${backend.connectionKey} ${JSON.stringify(backend.health)}`, backend);
    for (const [key, check] of this.checks) {
      if (wanted.has(key)) continue;
      check.stop();
      this.checks.delete(key);
    }
    for (const [key, backend] of wanted) {
      const known = this.checks.get(key);
      // Its key or its headers may have changed.
      if (known) known.backend = backend;
      else
        this.checks.set(key, new EngineCheck(backend, this.fleet.engineOf(backend.name), () => this.fleet.recheck()));
    }
  }

  close(): void {
    this.follow([]);
  }
}

class EngineCheck {
  private readonly client: Client;
  private readonly timer: NodeJS.Timeout;
  private failures = 0;
  private running = false;

  /** @param backend as the configuration in force describes it */
  constructor(
    public backend: Backend,
    private readonly engine: Engine,
    private readonly onHealthy: () => void,
  ) {
    const { intervalMs } = backend.health!;
    const timeoutMs = Math.min(intervalMs, MAX_TIMEOUT_MS);
    this.client = new Client(backend.origin, {
      connect: connectorFor(backend, timeoutMs),
      headersTimeout: timeoutMs,
      bodyTimeout: timeoutMs,
      allowH2: false,
    });
    this.timer = setInterval(() => void this.check(), intervalMs).unref();
    void this.check();
  }

  stop(): void {
    clearInterval(this.timer);
    void this.client.destroy();
    // Without checks, the backend counts as healthy.
    if (this.engine.failingChecks.delete(this) && this.engine.healthy) this.onHealthy();
  }

  private async check(): Promise<void> {
    if (this.running) return;
    this.running = true;
    const reason = await this.ask();
    this.running = false;
    if (this.client.destroyed) return;
    if (reason === null) return this.succeeded();
    this.failures += 1;
    const { healthy, failingChecks } = this.engine;
    if (this.failures < FAILURES_IN_A_ROW) return;
    failingChecks.add(this);
    if (!healthy) return;
    logger('gateway').warn(
      { backend: this.engine.name, reason },
      'a backend is unhealthy: it gets no calls if others can',
    );
  }

  private succeeded(): void {
    this.failures = 0;
    if (!this.engine.failingChecks.delete(this) || !this.engine.healthy) return;
    logger('gateway').info({ backend: this.engine.name }, 'a backend is healthy again');
    this.onHealthy();
  }

  /** Why it is not healthy, or null. */
  private async ask(): Promise<string | null> {
    const { health, headers, authorization } = this.backend;
    const all = authorization === null ? [...headers] : ['authorization', authorization, ...headers];
    try {
      const { statusCode, body } = await this.client.request({ path: health!.path, method: 'GET', headers: all });
      await body.dump();
      const isHealthy = health!.isStrict ? statusCode >= 200 && statusCode < 300 : statusCode < 500;
      return isHealthy ? null : `status ${statusCode}`;
    } catch (error) {
      return (error as Error & { code?: string }).code ?? (error as Error).name;
    }
  }
}
