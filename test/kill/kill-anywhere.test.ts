import { FAIL_POINTS } from '@tollgate/runtime';
import { eventually, onceServed, withDatabase } from '@tollgate/testing';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Database, Ready } from '../e2e/deployment';
import {
  complete,
  connected,
  costOf,
  createTenant,
  ledgerOf,
  writeConfig,
  type Completion,
  type TestTenant,
} from '../e2e/fixtures';
import { reconciled } from '../e2e/reconcile';
import { StandaloneProcess, useDataDirectory } from '../e2e/standalone-process';

const CREDIT_CENTS = 10_000;
/**
 * Only for a hang: longer than a start, the lease of 10 s and the sweeper's 5 s on a machine that is ten times slower.
 */
const REACHED_WITHIN_MS = 180_000;
/** Time from the signal to its confirmation on a busy machine. */
const ARMED_WITHIN_MS = 20_000;
const LANES = 2;
const MAX_STARTS = 3;
const adminUrl = process.env['TOLLGATE_TEST_DATABASE_URL']!;

/**
 * How many of the broken requests the books must have: none, some, or either. Answers that a client saw complete are
 * always in the books.
 */
type Cut = 'none' | 'some' | 'either';

interface Step {
  at: string;
  cut: Cut;
  /** The process reaches the step without requests, by the work that the last step left. It is armed from its start. */
  unasked?: true;
  /** By default all of `REQUESTS`. Fewer if another one could be charged before the process reaches this step. */
  requests?: Record<string, unknown>[];
}

const HELLO = { messages: [{ role: 'user', content: 'hello' }] };
const REFUSED_BY_BACKEND = { ...HELLO, simulator: { faults: [{ kind: 'status', status: 400 }] } };
const PLAIN = { ...HELLO, max_tokens: 30, simulator: { firstTokenDelayMs: 50 } };
const LATER_PLAIN = { ...HELLO, max_tokens: 40, simulator: { firstTokenDelayMs: 60 } };
/** Needs extensions, and runs for some seconds, so that its progress is recorded. */
const LONG_STREAM = { ...HELLO, stream: true, simulator: { tokensPerSecond: 1_000, answerTokens: 3_600 } };
const REQUESTS = [REFUSED_BY_BACKEND, PLAIN, LATER_PLAIN, LONG_STREAM];

/** Every step of the pipeline in order. A process is killed at each, and the next process continues its work. */
const STEPS: Step[] = [
  { at: 'admitted', cut: 'none' },
  { at: 'nothing-delivered', cut: 'none', requests: [REFUSED_BY_BACKEND] },
  { at: 'served', cut: 'none', requests: [PLAIN, LATER_PLAIN] },
  { at: 'settled', cut: 'some' },
  // Only the sweeper knows the settled holds.
  { at: 'swept', cut: 'either', unasked: true },
  { at: 'sweep-published', cut: 'either', unasked: true },
  { at: 'answered', cut: 'either' },
  { at: 'usage-publishing', cut: 'either' },
  { at: 'usage-published', cut: 'either' },
  { at: 'extended', cut: 'either' },
  // The first record may be of a stream that has delivered nothing yet.
  { at: 'progress-recorded', cut: 'either' },
  { at: 'recording', cut: 'either' },
  { at: 'recorded', cut: 'either' },
  { at: 'publishing metering', cut: 'either' },
  { at: 'published metering', cut: 'either' },
  { at: 'outbox-taken metering', cut: 'either' },
  { at: 'outbox-published metering', cut: 'either' },
  { at: 'outbox-emptied metering', cut: 'either' },
  { at: 'gathering', cut: 'either' },
  { at: 'publishing billing', cut: 'either' },
  { at: 'published billing', cut: 'either' },
  { at: 'gathered', cut: 'either' },
  { at: 'outbox-taken billing', cut: 'either' },
  { at: 'outbox-published billing', cut: 'either' },
  { at: 'outbox-emptied billing', cut: 'either' },
  { at: 'posting', cut: 'either' },
  { at: 'posted', cut: 'either' },
  { at: 'balance-applying', cut: 'either' },
  { at: 'balance-applied', cut: 'either' },
];

interface Outcome {
  step: Step;
  tenant: TestTenant;
  seen: Completion[];
  broken: number;
}

/** One database with processes on it, one after the other. */
class Lane {
  readonly database: Database = (work) => connected({ connectionString: this.url }, work);
  readonly outcomes: Outcome[] = [];
  private readonly name: string;

  constructor(
    private readonly directory: string,
    number: number,
  ) {
    this.name = `kill_${process.pid}_${number}`;
  }

  private get url(): string {
    return withDatabase(adminUrl, this.name);
  }

  async run(steps: readonly Step[]): Promise<void> {
    await connected({ connectionString: adminUrl }, (client) => client.query(`CREATE DATABASE ${this.name}`));
    for (const step of steps) await this.killAt(step);
    const last = await this.start(this.env());
    await reconciled(last.ready, 60_000);
    await last.end();
  }

  async remove(): Promise<void> {
    await connected({ connectionString: adminUrl }, (client) =>
      client.query(`DROP DATABASE IF EXISTS ${this.name} WITH (FORCE)`),
    );
  }

  private async killAt(step: Step): Promise<void> {
    if (step.unasked) return this.killUnasked(step);
    const process = await this.start(this.env(step));
    const { ready } = process;
    const tenant = await createTenant(ready, CREDIT_CENTS);
    // On a busy machine the store may not answer in time. Such a refusal holds and charges nothing.
    const first = await onceServed(() => complete(ready, tenant.key, { ...HELLO, max_tokens: 20 }));
    expect(first).toMatchObject({ status: 200, code: null });
    const seen = [first];
    process.child.kill('SIGUSR2');
    await eventually(() => expect(process.stderr).toContain(`armed: ${step.at}`), { timeoutMs: ARMED_WITHIN_MS });
    let broken = 0;
    // A busy store may refuse them before they reach the step.
    const asked = (step.requests ?? REQUESTS).map((body) =>
      onceServed(() => complete(ready, tenant.key, body)).then(
        (completion) => {
          if (completion.status !== 200) return;
          // A stream that ended with an error event is not complete.
          if (completion.code === null) seen.push(completion);
          else broken++;
        },
        () => void broken++,
      ),
    );
    await this.expectDeath(process, step);
    await Promise.all(asked);
    this.outcomes.push({ step, tenant, seen, broken });
  }

  private async killUnasked(step: Step): Promise<void> {
    let process = StandaloneProcess.spawn(this.env(step));
    for (let attempt = 1; attempt < MAX_STARTS && !(await diesByItself(process)); attempt++)
      process = StandaloneProcess.spawn(this.env(step));
    await this.expectDeath(process, step);
  }

  /** Repeats a failed start, as a supervisor does. On a very busy machine a server may not answer in time. */
  private async start(env: Record<string, string>): Promise<StandaloneProcess & { ready: Ready }> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await StandaloneProcess.start(env);
      } catch (error) {
        if (attempt === MAX_STARTS) throw error;
      }
    }
  }

  private async expectDeath(process: StandaloneProcess, { at }: Step): Promise<void> {
    await eventually(() => expect([at, process.child.signalCode]).toEqual([at, 'SIGKILL']), {
      timeoutMs: REACHED_WITHIN_MS,
    });
  }

  private env(step?: Step): Record<string, string> {
    return {
      DATABASE_URL: this.url,
      TOLLGATE_CONFIG: writeConfig(this.directory),
      TOLLGATE_DATA_DIR: join(this.directory, this.name),
      TOLLGATE_DEMO: 'false',
      ...(step
        ? { NODE_OPTIONS: `--import ${pathToFileURL(join(__dirname, 'kill-at.mjs')).href}`, KILL_AT: step.at }
        : {}),
      ...(step?.unasked ? { KILL_FROM_START: '1' } : {}),
    };
  }
}

/** False if it could not start. */
async function diesByItself({ child }: StandaloneProcess): Promise<boolean> {
  await eventually(() => expect(child.exitCode ?? child.signalCode).not.toBeNull(), { timeoutMs: REACHED_WITHIN_MS });
  return child.signalCode !== null;
}

describe('a process that is killed at any step between the request and the ledger', () => {
  const directory = useDataDirectory();
  let lanes: Lane[] = [];
  afterAll(() => Promise.all(lanes.map((lane) => lane.remove())));

  it('is tried at every step', () => {
    expect(new Set(STEPS.map(({ at }) => at.split(' ')[0]))).toEqual(new Set(FAIL_POINTS));
  });

  it('loses and doubles nothing: every answer that a client saw complete is in the ledger exactly once', async () => {
    lanes = Array.from({ length: LANES }, (_, n) => new Lane(directory.path, n));
    // In parallel, because a start uses mostly one core.
    const share = Math.ceil(STEPS.length / LANES);
    await Promise.all(lanes.map((lane, n) => lane.run(STEPS.slice(n * share, (n + 1) * share))));
    for (const lane of lanes) for (const outcome of lane.outcomes) await expectExactlyOnce(lane.database, outcome);
  }, 1_200_000);
});

async function expectExactlyOnce(database: Database, { step, tenant, seen, broken }: Outcome): Promise<void> {
  const books = await ledgerOf(database, tenant.id);
  const of = (completion: Completion) => [step.at, completion.requestId, books.charges.get(completion.requestId)];
  for (const completion of seen) expect(of(completion)).toEqual([step.at, completion.requestId, costOf(completion)]);
  const cutAndCharged = books.charges.size - seen.length;
  expect([step.at, cutAndCharged >= 0 && cutAndCharged <= broken]).toEqual([step.at, true]);
  if (step.cut === 'none') expect([step.at, cutAndCharged]).toEqual([step.at, 0]);
  if (step.cut === 'some') expect([step.at, cutAndCharged > 0]).toEqual([step.at, true]);
  const charged = [...books.charges.values()].reduce((sum, nanos) => sum + nanos, 0);
  expect([step.at, books.debitCents * 1e7 + books.carriedNanos]).toEqual([step.at, charged]);
  expect([step.at, books.balanceCents]).toEqual([step.at, CREDIT_CENTS - books.debitCents]);
  expect([step.at, books.coveredTwice]).toEqual([step.at, 0]);
}
