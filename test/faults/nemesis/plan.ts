import { randomFrom } from '../random';

const PARTS = ['gateway', 'auth', 'metering', 'billing', 'redis', 'kafka', 'postgres', 'haproxy'] as const;
export type Part = (typeof PARTS)[number];

export type Kind = 'kill' | 'pause' | 'freeze' | 'cut' | 'empty' | 'restart' | 'clock';

/**
 * The faults of each part. The load balancer is only killed and restarted, because no request is answered while it is
 * frozen or cut off. Kafka and PostgreSQL are never emptied, because they have the books. Admission and credentials use
 * the clock of Redis. The clocks of Kafka and PostgreSQL cannot be set without another image.
 */
const POSSIBLE: Record<Part, readonly Kind[]> = {
  gateway: ['kill', 'pause', 'freeze', 'cut', 'restart', 'clock'],
  auth: ['kill', 'pause', 'freeze', 'cut', 'restart', 'clock'],
  metering: ['kill', 'pause', 'freeze', 'cut', 'restart', 'clock'],
  billing: ['kill', 'pause', 'freeze', 'cut', 'restart', 'clock'],
  redis: ['kill', 'pause', 'freeze', 'cut', 'empty', 'restart', 'clock'],
  kafka: ['kill', 'pause', 'freeze', 'cut', 'restart'],
  postgres: ['kill', 'pause', 'freeze', 'cut', 'restart'],
  haproxy: ['kill', 'restart'],
};
/** The number of containers of each part in the tests. */
const REPLICAS: Partial<Record<Part, number>> = { gateway: 2, metering: 2, billing: 2 };
/** A service is cut off from one server or from everything. A server is always cut off from everything. */
const CUTS = ['redis', 'kafka', 'all'] as const;

/** Time between the beginnings of two faults. */
const STAGGER_MS = { from: 300, to: 4_000 };
/** How long each fault lasts after the last one has begun, so that all of them overlap. */
const OVERLAP_MS = { from: 1_000, to: 8_000 };
const CLOCK_STEPS_MS = [2_000, 12_000, 70_000, 3_600_000];
const ALL_REPLICAS_SHARE = 0.3;
const TRIPLES_SHARE = 0.3;
const MAX_TRIES = 1_000;

export interface PlannedFault {
  kind: Kind;
  part: Part;
  /** The index of its container, from 0. */
  replicas: readonly number[];
  cutFrom?: (typeof CUTS)[number];
  /** By how much its clock is ahead or behind. */
  clockMs?: number;
  /** Times from the beginning of the round. */
  beginMs: number;
  endMs: number;
}

export interface PlannedRound {
  seed: number;
  number: number;
  faults: readonly PlannedFault[];
}

/**
 * Rounds from 1 on. Each depends only on the seed and its number, so `--only 7` plays the same as round 7 of the whole
 * run.
 */
export function planOf(seed: number, rounds: number, { triples = true } = {}): PlannedRound[] {
  return Array.from({ length: rounds }, (_, index) => planRound(seed, index + 1, triples));
}

function planRound(seed: number, number: number, triples: boolean): PlannedRound {
  const random = randomFrom(Math.imul(seed, 0x9e3779b1) + number);
  const pick = <T>(values: readonly T[]): T => values[Math.floor(random() * values.length)]!;
  const between = ({ from, to }: { from: number; to: number }) => Math.round(from + random() * (to - from));
  const count = triples && random() < TRIPLES_SHARE ? 3 : 2;
  const chosen: Omit<PlannedFault, 'beginMs' | 'endMs'>[] = [];
  for (let tries = 0; chosen.length < count; tries++) {
    if (tries === MAX_TRIES) throw new Error('no further fault is possible beside the others');
    const part = pick(PARTS);
    const kind = pick(POSSIBLE[part]);
    const fault = { kind, part, replicas: replicasOf(part, random) };
    if (chosen.some((other) => overlaps(other, fault))) continue;
    if (kind === 'cut') chosen.push({ ...fault, cutFrom: isService(part) ? pick(CUTS) : 'all' });
    else if (kind === 'clock') chosen.push({ ...fault, clockMs: pick([-1, 1]) * pick(CLOCK_STEPS_MS) });
    else chosen.push(fault);
  }
  let beginMs = 0;
  const begins = chosen.map((_, index) => (index === 0 ? 0 : (beginMs += between(STAGGER_MS))));
  return {
    seed,
    number,
    faults: chosen.map((fault, index) => ({
      ...fault,
      beginMs: begins[index]!,
      endMs: begins.at(-1)! + between(OVERLAP_MS),
    })),
  };
}

function replicasOf(part: Part, random: () => number): readonly number[] {
  const count = REPLICAS[part] ?? 1;
  const all = Array.from({ length: count }, (_, index) => index);
  return count === 1 || random() < ALL_REPLICAS_SHARE ? all : [Math.floor(random() * count)];
}

/** A container has one fault at a time, because a killed one cannot be paused. */
const overlaps = (one: Pick<PlannedFault, 'part' | 'replicas'>, other: Pick<PlannedFault, 'part' | 'replicas'>) =>
  one.part === other.part && one.replicas.some((index) => other.replicas.includes(index));

const SERVICES: readonly Part[] = ['gateway', 'auth', 'metering', 'billing'];
export const isService = (part: Part) => SERVICES.includes(part);

/** `kill gateway 1 (0.0–6.2 s) + clock -70 s of billing (1.3–8.0 s)` */
export const describeRound = ({ faults }: PlannedRound) => faults.map(describeFault).join(' + ');

function describeFault({ kind, part, replicas, cutFrom, clockMs, beginMs, endMs }: PlannedFault): string {
  const which = REPLICAS[part] === undefined ? part : `${part} ${replicas.map((index) => index + 1).join('+')}`;
  const step = `${clockMs! > 0 ? '+' : ''}${clockMs! / 1_000} s`;
  const what =
    kind === 'clock'
      ? `clock ${step} of ${which}`
      : kind === 'cut' && isService(part)
        ? `cut ${which} off from ${cutFrom}`
        : `${kind} ${which}`;
  return `${what} (${(beginMs / 1_000).toFixed(1)}–${(endMs / 1_000).toFixed(1)} s)`;
}
