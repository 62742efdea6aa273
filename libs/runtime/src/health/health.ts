import { PolledGauge } from '../metrics/polled-gauge';
import { withTimeout } from '../timing';

/** The time limit of a check. A check that takes longer counts as failed. */
const CHECK_TIMEOUT_MS = 1_000;
/** The minimum time between two checks of a dependency, however often somebody asks. */
const CACHE_MS = 250;
/** Older results are discarded: this process stood still, or nobody has asked. */
const KNOWN_FOR_MS = 3_000;

/** Read when it is scraped, by the check of the probes. */
const up = new PolledGauge({
  name: 'tollgate_dependency_up',
  help: '1: the dependency of this process answers, as /readyz says. 0: it does not',
  labelNames: ['dependency'],
  aggregator: 'min',
});

export interface Dependency {
  /** Without it the process is not ready. The others are only reported. */
  required: boolean;
  /** Rejects with the reason while the dependency does not answer. */
  check(): Promise<unknown>;
}

export interface DependencyState {
  ok: boolean;
  required: boolean;
  /** The reason, without users or secrets: for operators. */
  reason?: string;
}

export interface Readiness {
  status: 'ok' | 'unavailable' | 'starting' | 'stopping';
  dependencies: Record<string, DependencyState>;
}

/** The readiness of this process. Simultaneous probes share one check. */
export class Health {
  /** `stopping` is set first when the process stops, so that it gets no new work. */
  state: 'starting' | 'serving' | 'stopping' = 'starting';
  private readonly dependencies = new Map<string, Dependency>();
  private last: { atMs: number; states: Promise<[string, DependencyState][]> } | undefined;
  /** The result of the last finished check, by its start. */
  private known: { atMs: number; lacking: boolean } | undefined;

  depend(name: string, dependency: Dependency): void {
    if (this.dependencies.size === 0)
      up.from(async () =>
        (await this.states()).map(([of, { ok }]) => ({ labels: { dependency: of }, value: Number(ok) })),
      );
    this.dependencies.set(name, dependency);
    this.last = undefined;
  }

  /** Resolves within CHECK_TIMEOUT_MS. */
  async readiness(): Promise<Readiness> {
    const states = await this.states();
    const status = this.state !== 'serving' ? this.state : isLacking(states) ? 'unavailable' : 'ok';
    return { status, dependencies: Object.fromEntries(states) };
  }

  /**
   * The same for load balancers, which take a late answer for a dead process: whether to send new work, answered at
   * once from the known state. A silent dependency changes the state within CHECK_TIMEOUT_MS. Asking starts another
   * check.
   */
  takesWork(): boolean {
    void this.states();
    if (this.state !== 'serving' || !this.known) return false;
    return !this.known.lacking && performance.now() - this.known.atMs <= KNOWN_FOR_MS;
  }

  private states(): Promise<[string, DependencyState][]> {
    const atMs = performance.now();
    if (this.last && atMs - this.last.atMs <= CACHE_MS) return this.last.states;
    const states = Promise.all([...this.dependencies].map((entry) => look(entry)));
    this.last = { atMs, states };
    void states.then((found) => {
      if (!this.known || this.known.atMs < atMs) this.known = { atMs, lacking: isLacking(found) };
    });
    return states;
  }
}

const isLacking = (states: readonly [string, DependencyState][]): boolean =>
  states.some(([, { ok, required }]) => required && !ok);

async function look([name, { required, check }]: [string, Dependency]): Promise<[string, DependencyState]> {
  try {
    await withTimeout(CHECK_TIMEOUT_MS, check());
    return [name, { ok: true, required }];
  } catch (error) {
    return [name, { ok: false, required, reason: error instanceof Error ? error.message : String(error) }];
  }
}
