import { eventually } from '@tollgate/testing';
import type { ComposedDeployment } from '../../e2e/composed';
import { createTenant, withSecondKey, type Books, type TestTenant } from '../../e2e/fixtures';
import type { Outcome } from '../client-request';
import { chargedTokens } from '../ledger-check';
import { Load } from '../load';
import { randomFrom } from '../random';
import { failureKinds, Trials, type Trial } from '../trial';
import type { Clocks } from './clocks';
import type { Control } from './control';
import { isBack, prepare, type Inflicted } from './inflict';
import { Operations } from './operations';
import { describeRound, type PlannedFault, type PlannedRound } from './plan';
import {
  countBooked,
  mayLackAnswers,
  recoverySlackMs,
  waitsOf,
  wrongAnswers,
  wrongCharges,
  type Measure,
  type Waits,
} from './verdict';

const TENANTS = 2;
const CREDIT_CENTS = 100_000;
const SCARCE_BEGIN_CENTS = 1;
/**
 * A quarter of the load of single faults, because these rounds search for errors and not for the limits of the machine.
 */
const LOAD_EVERY_MS = 100;
/**
 * The recovery from several faults takes several steps: the session of a killed broker (6 s), that of a killed consumer
 * (3 s), the hold of a dead gateway (10 s), and its record, which the sweeper publishes again after 5 s.
 */
const DUST_LIMIT_MS = 47_000;
/** A recovery that takes longer has failed. */
const DUST_TIMEOUT_MS = 150_000;
/** The events of requests that ended this long before the first fault may not be published yet. */
const PUBLISH_SLACK_MS = 2_000;

export interface RoundResult {
  planned: PlannedRound;
  begunAt: Date;
  /** Empty if the round was right. */
  findings: string[];
  requests: number;
  whole: number;
  /** The complete answers that are missing in the ledger, where the documents allow it. */
  lacking: number;
  failures: string;
  operations: number;
  waits: Waits;
  /** The longest and the mean time for 5 ms of work. */
  machine: { maxMs: number; meanMs: number };
  /** Null if the round ended before. */
  trial: Pick<Trial, 'recoveryMs' | 'settledMs'> | null;
  books: ReadonlyMap<string, Books>;
  outcomes: readonly Outcome[];
}

/** Plays a round of a plan on a running deployment, with its own tenants. Rejects only if it could not begin. */
export async function playRound(
  tollgate: ComposedDeployment,
  clocks: Clocks,
  control: Control,
  planned: PlannedRound,
): Promise<RoundResult> {
  const seed = Math.imul(planned.seed, 31) + planned.number;
  await tollgate.allReady();
  const { tenants, scarce, revoked } = await makeTenants(tollgate);
  const load = new Load(() => tollgate.ready.inferenceUrl, [...tenants, scarce], seed, LOAD_EVERY_MS);
  const given = [...tenants, revoked].map(({ id }) => ({ id, creditCents: CREDIT_CENTS }));
  const credits = [...given, { id: scarce.id, creditCents: SCARCE_BEGIN_CENTS }];
  const trials = new Trials(tollgate, load, credits, scarce, () => control);
  const ids = [...new Set(tenants.map(({ id }) => id)), scarce.id];
  const operations = new Operations(tollgate, ids, scarce.id, revoked, randomFrom(seed), (id, cents) =>
    trials.credited(id, cents),
  );
  const faults = await Promise.all(planned.faults.map((fault) => prepare(tollgate, clocks, fault)));

  const begunAt = new Date();
  let [begunMs, backMs] = [begunAt.getTime(), Infinity];
  const findings: string[] = [];
  const measure: Measure = { control };
  let trial: Trial | null = null;
  const mayLack = mayLackAnswers(planned)
    ? ({ endedMs }: Outcome) => endedMs >= begunMs - PUBLISH_SLACK_MS && endedMs <= backMs
    : undefined;
  const inflict = async () => {
    begunMs = Date.now();
    operations.start();
    await inflictAll(faults, async ({ part }, fromMs) => {
      if (part !== 'haproxy') return;
      await isBack(
        tollgate,
        planned.faults.find((fault) => fault.part === part)!,
      );
      measure.nobody = { fromMs, untilMs: Date.now() };
    });
    await eventually(() => isAllBack(tollgate, planned), { timeoutMs: DUST_TIMEOUT_MS });
    backMs = Date.now();
  };
  try {
    trial = await trials.run(describeRound(planned), inflict, {
      empties: planned.faults.some(({ kind }) => kind === 'empty'),
      // The limit is a finding below, beside the others.
      dustLimitMs: DUST_TIMEOUT_MS,
      dustTimeoutMs: DUST_TIMEOUT_MS,
      afterwards: () => operations.finish(),
      ...(mayLack && { mayLack }),
    });
  } catch (error) {
    findings.push((error as Error).message);
  } finally {
    await operations.stop();
    await load.pause();
  }
  const outcomes = load.outcomes.filter(({ endedMs }) => endedMs >= begunMs);
  const books = trial?.books ?? new Map<string, Books>();
  findings.push(...operations.findings, ...wrongAnswers(outcomes, measure, (one) => trials.isSpent(one), begunMs));
  if (trial) {
    const broken = outcomes.filter(({ failure }) => failure !== null).flatMap(({ requestId }) => requestId ?? []);
    const charged = await chargedTokens(tollgate.database, broken);
    findings.push(...wrongCharges(planned, outcomes, charged, begunMs));
  }
  if (trial) {
    const limitMs = DUST_LIMIT_MS + recoverySlackMs(control, begunMs, Date.now());
    for (const [what, ms] of [
      ['felt', trial.recoveryMs],
      ['not settled', trial.settledMs],
    ] as const)
      if (ms > limitMs) findings.push(`${what} for ${ms} ms, and the limit is ${Math.round(limitMs)} ms`);
  }
  const booked = countBooked(outcomes, books);
  return {
    planned,
    begunAt,
    findings,
    requests: outcomes.length,
    whole: booked.whole,
    lacking: trial ? booked.lacking : 0,
    failures: failureKinds(trials.failedOf(outcomes)),
    operations: operations.booked,
    waits: waitsOf(outcomes, measure),
    machine: { maxMs: control.longestMs(begunMs, Date.now()), meanMs: control.meanMs(begunMs, Date.now()) },
    trial,
    books,
    outcomes,
  };
}

async function isAllBack(tollgate: ComposedDeployment, { faults }: PlannedRound): Promise<void> {
  await Promise.all(faults.map((fault) => isBack(tollgate, fault)));
  await tollgate.allReady();
}

/**
 * Begins and ends each fault by the plan, independent of the others. Rejects after all of them if one failed. `ended`
 * is called for each fault with the time of its beginning.
 */
async function inflictAll(
  faults: readonly Inflicted[],
  ended: (fault: PlannedFault, begunMs: number) => Promise<void>,
): Promise<void> {
  const startMs = Date.now();
  const until = (ms: number) => new Promise((resolve) => setTimeout(resolve, Math.max(0, startMs + ms - Date.now())));
  const played = await Promise.allSettled(
    faults.map(async ({ planned, begin, end }) => {
      await until(planned.beginMs);
      const begunMs = Date.now();
      await begin();
      await until(planned.endMs);
      await end();
      await ended(planned, begunMs);
    }),
  );
  const failed = played.flatMap((one) => (one.status === 'rejected' ? [String(one.reason)] : []));
  if (failed.length > 0) throw new Error(`not inflicted: ${failed.join('; ')}`);
}

async function makeTenants(
  tollgate: ComposedDeployment,
): Promise<{ tenants: TestTenant[]; scarce: TestTenant; revoked: TestTenant }> {
  const made = Array.from({ length: TENANTS + 1 }, () => createTenant(tollgate.ready, CREDIT_CENTS));
  const [scarce, revoked, ...rich] = await Promise.all([createTenant(tollgate.ready, SCARCE_BEGIN_CENTS), ...made]);
  const seconds = await Promise.all(rich.map((tenant) => withSecondKey(tollgate.ready, tenant)));
  return { tenants: [...rich, ...seconds], scarce: scarce, revoked: revoked! };
}
