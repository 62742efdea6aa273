import { describeRound, planOf, type PlannedFault } from './plan';

const ROUNDS = 2_000;
const plan = planOf(4711, ROUNDS);

describe('the plan of a run', () => {
  it('follows from its seed, and each round from its number', () => {
    expect(planOf(4711, ROUNDS)).toEqual(plan);
    expect(planOf(4711, 7)).toEqual(plan.slice(0, 7));
    expect(planOf(4712, ROUNDS)).not.toEqual(plan);
  });

  it('has each fault of each part sooner or later, and no two rounds alike', () => {
    const kinds = new Set(plan.flatMap(({ faults }) => faults.map(({ kind, part }) => `${kind} ${part}`)));
    expect(kinds.size).toBe(4 * 6 + 7 + 5 + 5 + 2);
    expect(new Set(plan.map(describeRound)).size).toBe(ROUNDS);
  });

  it('is of pairs and triples that overlap in time, on containers of their own', () => {
    for (const { faults } of plan) {
      expect([2, 3]).toContain(faults.length);
      const [lastBegun, firstEnded] = [Math.max(...faults.map(begin)), Math.min(...faults.map(end))];
      expect(firstEnded - lastBegun).toBeGreaterThanOrEqual(1_000);
      const containers = faults.flatMap(({ part, replicas }) => replicas.map((index) => `${part} ${index}`));
      expect(new Set(containers).size).toBe(containers.length);
    }
  });

  it('is of pairs alone when it is asked to', () => {
    expect(planOf(1, 100, { triples: false }).every(({ faults }) => faults.length === 2)).toBe(true);
  });

  it('leaves out what nobody could answer, and the loss of the truth', () => {
    const all = plan.flatMap(({ faults }) => faults);
    expect(all.filter(({ part, kind }) => part === 'haproxy' && kind !== 'kill' && kind !== 'restart')).toEqual([]);
    expect(all.filter(({ part, kind }) => part !== 'redis' && kind === 'empty')).toEqual([]);
  });
});

const begin = ({ beginMs }: PlannedFault) => beginMs;
const end = ({ endMs }: PlannedFault) => endMs;
