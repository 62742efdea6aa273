/** Whether a process can do its work, dependency by dependency. A check that takes longer counts as failed. */
const CHECK_TIMEOUT_MS = 1_000;
/** However often somebody asks, a dependency is not asked more often than this. */
const CACHE_MS = 250;

export interface Dependency {
  /** Without it the process is not ready; the others are only reported. */
  required: boolean;
  /** Rejects with the reason while it does not answer. */
  check(): Promise<unknown>;
}

export interface DependencyState {
  ok: boolean;
  required: boolean;
  /** Why not, without addresses of users or secrets: for operators. */
  reason?: string;
}

export interface Readiness {
  status: 'ok' | 'unavailable' | 'starting' | 'stopping';
  dependencies: Record<string, DependencyState>;
}

/** The readiness of this process: asked by probes, several at once share one look. */
export class Health {
  /** `stopping` is set first thing when the process stops: nobody shall send it anything new. */
  state: 'starting' | 'serving' | 'stopping' = 'starting';
  private readonly dependencies = new Map<string, Dependency>();
  private last: { atMs: number; states: Promise<[string, DependencyState][]> } | undefined;

  depend(name: string, dependency: Dependency): void {
    this.dependencies.set(name, dependency);
    this.last = undefined;
  }

  /** Within CHECK_TIMEOUT_MS. */
  async readiness(): Promise<Readiness> {
    const now = performance.now();
    if (!this.last || now - this.last.atMs > CACHE_MS)
      this.last = { atMs: now, states: Promise.all([...this.dependencies].map((entry) => look(entry))) };
    const states = await this.last.states;
    const lacking = states.some(([, { ok, required }]) => required && !ok);
    const status = this.state !== 'serving' ? this.state : lacking ? 'unavailable' : 'ok';
    return { status, dependencies: Object.fromEntries(states) };
  }
}

async function look([name, { required, check }]: [string, Dependency]): Promise<[string, DependencyState]> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${CHECK_TIMEOUT_MS} ms`)), CHECK_TIMEOUT_MS);
  });
  try {
    await Promise.race([check(), late]);
    return [name, { ok: true, required }];
  } catch (error) {
    return [name, { ok: false, required, reason: error instanceof Error ? error.message : String(error) }];
  } finally {
    clearTimeout(timer);
  }
}
