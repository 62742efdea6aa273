import { createHash } from 'node:crypto';
import { logger } from '@tollgate/runtime';
import type { Backend, CatalogModel } from '../../catalog/catalog';
import { BackendTimes, noteResult } from './backend-metrics';
import { Breaker, type CallResult } from './breaker';
import { RetryBudget } from './retry-budget';
import { WaitQueue } from './wait-queue';

const NOTHING: ReadonlySet<string> = new Set();

/** What all models with the same base URL share: usually one engine. */
export class Engine {
  /** Calls in progress, from the choice of the backend to the end of its answer. */
  inFlight = 0;
  /** An operator drained it: it gets no new calls. */
  drained = false;
  /** Its health checks that fail. Models with the same URL may have different ones. A check is for one access. */
  readonly failingChecks = new Set<{ readonly access: string }>();
  /** The circuit breakers of its models, by `breakerKey`. */
  readonly breakers = new Map<string, Breaker>();
  /** The keys of the breakers that the configuration gives calls, because their backend has a weight above 0. */
  called: ReadonlySet<string> = NOTHING;
  /** The queues of models with this backend in which requests wait. */
  readonly queues = new Set<WaitQueue>();

  /** @param name as in usage events: the base URL */
  constructor(readonly name: string) {}

  /** All checks succeed, whatever their access. True without checks. */
  get healthy(): boolean {
    return this.failingChecks.size === 0;
  }

  get openBreakers(): number {
    return this.count(({ isOpen }) => isOpen);
  }

  get silentModels(): number {
    return this.count(({ silence }) => silence.isSilent);
  }

  /** Counts only what may get calls: without calls no breaker closes and no silence ends, and nobody has to act. */
  private count(test: (one: Breaker) => boolean): number {
    if (this.drained) return 0;
    let all = 0;
    for (const [key, one] of this.breakers) all += Number(this.called.has(key) && test(one));
    return all;
  }
}

/** The backends of a model with one URL: other keys, or other models there. They share the calls in progress. */
interface OneUrl {
  /** Of all of them. */
  weight: number;
  /** How many of them come before this one in the configuration. */
  before: number;
}

/** A backend of a model, with its state in this process. */
export class ManagedBackend {
  /** 32 bits of its name, the same in every process, and another one for each backend at one URL. */
  readonly hash: number;
  /** The weight of all backends of the model at its URL, because the calls in progress are counted for all of them. */
  readonly engineWeight: number;
  readonly times: BackendTimes;
  readonly access: string;

  constructor(
    readonly model: string,
    readonly backend: Backend,
    readonly engine: Engine,
    readonly breaker: Breaker,
    { weight, before }: OneUrl = { weight: backend.weight, before: 0 },
  ) {
    this.engineWeight = weight;
    const name = before === 0 ? engine.name : `${engine.name} ${before}`;
    this.hash = createHash('sha256').update(name).digest().readUInt32BE();
    this.access = accessOf(backend);
    this.times = new BackendTimes(model, engine.name);
  }

  /** No check with its key and its headers fails. */
  get healthy(): boolean {
    for (const { access } of this.engine.failingChecks) if (access === this.access) return false;
    return true;
  }

  /** It may get calls if there is nothing better. */
  get isUsable(): boolean {
    return this.backend.weight > 0 && !this.engine.drained;
  }

  /** False: it left the configuration, or is reached in another way there. */
  get isNamed(): boolean {
    return this.engine.breakers.get(breakerKey(this.backend)) === this.breaker;
  }

  get hasPlace(): boolean {
    return this.engine.inFlight < this.backend.maxConcurrency;
  }

  /** It will probably answer a call. */
  isGood(nowMs: number): boolean {
    return this.isUsable && this.healthy && this.breaker.restMs(nowMs) === 0 && this.breaker.allows(nowMs);
  }

  /** When it may be worth a call again, in ms from now. */
  waitMs(nowMs: number): number {
    return Math.max(this.breaker.restMs(nowMs), this.breaker.waitMs(nowMs));
  }

  /** The client of a call that was sent has left, and its answer had not begun. */
  clientLeft(nowMs: number): void {
    if (!this.breaker.silence.clientLeft(nowMs)) return;
    logger('gateway').warn(
      { backend: this.engine.name, model: this.model },
      'a backend is silent: its last clients left before it began to answer; it is called last until it answers',
    );
  }

  /** An answer began. */
  answered(): void {
    if (!this.breaker.silence.answered()) return;
    logger('gateway').info({ backend: this.engine.name, model: this.model }, 'a silent backend answers again');
  }

  /** A call ended. Returns true if a connection in the background must find out whether it is reachable again. */
  ended(result: CallResult, wasProbe: boolean, nowMs: number): boolean {
    noteResult(this.model, this.engine.name, result);
    return this.breaker.ended(result, wasProbe, nowMs) && this.breaker.unreachable;
  }
}

/** A model's backends, its queue and its retry budget. */
export interface Pool {
  readonly backends: readonly ManagedBackend[];
  readonly queue: WaitQueue;
  readonly budget: RetryBudget;
}

/**
 * The state of all backends in this process: calls in progress, circuit breakers, health, pauses, queues. It survives
 * changes of `tollgate.yaml` that leave the backend there. Backends with the same URL share an engine. Those that also
 * have the same name of the model, key, headers and way to connect share a breaker.
 */
export class Fleet {
  private readonly pools = new WeakMap<CatalogModel, Pool>();
  private readonly shared = new Map<string, { queue: WaitQueue; budget: RetryBudget }>();
  private readonly engines = new Map<string, Engine>();
  /** What the configuration gives calls: the keys of the breakers of a backend, by its name. */
  private called: ReadonlyMap<string, ReadonlySet<string>> = new Map();
  private drained: ReadonlySet<string> = new Set();

  poolOf(model: CatalogModel): Pool {
    let pool = this.pools.get(model);
    if (!pool) this.pools.set(model, (pool = this.compile(model)));
    return pool;
  }

  engineOf(name: string): Engine {
    let engine = this.engines.get(name);
    if (!engine) {
      this.engines.set(name, (engine = new Engine(name)));
      engine.drained = this.drained.has(name);
      engine.called = this.called.get(name) ?? NOTHING;
    }
    return engine;
  }

  /**
   * Exactly these models are in force from now on. Drops the state of backends that left; an engine with calls in
   * progress stays until a later change. Running requests keep what they have.
   */
  follow(models: readonly CatalogModel[]): void {
    const backends = models.flatMap((model) => model.backends);
    const named = byName(backends);
    this.called = byName(backends.filter(({ weight }) => weight > 0));
    for (const [name, engine] of this.engines) {
      engine.called = this.called.get(name) ?? NOTHING;
      for (const key of engine.breakers.keys()) if (!named.get(name)?.has(key)) engine.breakers.delete(key);
      if (!named.has(name) && engine.inFlight === 0) this.engines.delete(name);
    }
  }

  /** All engines that were asked or checked, also one that left the configuration during a call. */
  get all(): Iterable<Engine> {
    return this.engines.values();
  }

  /** Exactly these backends get no new calls from now on. */
  drainOnly(names: ReadonlySet<string>): void {
    this.drained = names;
    for (const engine of this.engines.values()) engine.drained = names.has(engine.name);
    this.recheck();
  }

  /** A call of this engine ended. Waiting requests go on, outside of undici's parser. */
  released(engine: Engine): void {
    engine.inFlight -= 1;
    if (engine.queues.size > 0) queueMicrotask(() => wake(engine.queues));
  }

  /** Lets all waiting requests look for a place again: a backend came back. */
  recheck(): void {
    wake(new Set([...this.shared.values()].map(({ queue }) => queue)));
  }

  private compile(model: CatalogModel): Pool {
    let shared = this.shared.get(model.id);
    if (!shared) this.shared.set(model.id, (shared = { queue: new WaitQueue(), budget: new RetryBudget() }));
    const backends = model.backends.map((backend, n) => {
      const engine = this.engineOf(backend.name);
      const key = breakerKey(backend);
      let breaker = engine.breakers.get(key);
      if (!breaker) engine.breakers.set(key, (breaker = new Breaker()));
      return new ManagedBackend(model.id, backend, engine, breaker, oneUrl(model.backends, n));
    });
    return { backends, ...shared };
  }
}

function oneUrl(all: readonly Backend[], n: number): OneUrl {
  const isThere = ({ name }: Backend) => name === all[n]!.name;
  const weight = all.filter(isThere).reduce((sum, one) => sum + one.weight, 0);
  return { weight, before: all.slice(0, n).filter(isThere).length };
}

/**
 * The same for backends with one URL that share a breaker. A backend that could not be reached gets a new breaker when
 * its TLS or its time to connect changes: otherwise the background probes would continue with the former settings, and
 * fail. A backend with another key (also in a header) may be served while the first one is refused or limited. Never
 * logged: it has the keys.
 */
function breakerKey(backend: Backend): string {
  return JSON.stringify([backend.model, accessOf(backend)]);
}

/** The same for backends with the same connections, key and headers. Never logged: it has them. */
export function accessOf({ connectionKey, authorization, headers }: Backend): string {
  return JSON.stringify([connectionKey, authorization, headers]);
}

/** The keys of the breakers of each backend. */
function byName(backends: readonly Backend[]): Map<string, Set<string>> {
  const keys = new Map<string, Set<string>>();
  for (const backend of backends)
    keys.set(backend.name, (keys.get(backend.name) ?? new Set()).add(breakerKey(backend)));
  return keys;
}

/**
 * Lets waiting requests go, the longest wait first, until those of each queue find no place. A request that goes
 * may leave the place free for others: it asks another backend, or ends without asking any.
 */
function wake(queues: ReadonlySet<WaitQueue>): void {
  const left = new Set(queues);
  while (left.size > 0) {
    const [first, ...others] = left;
    const longest = others.reduce((a, b) => (b.sinceMs < a.sinceMs ? b : a), first!);
    if (!longest.next()) left.delete(longest);
  }
}
