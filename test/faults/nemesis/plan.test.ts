import { describeRound, planOf, type PlannedFault } from './plan';

const ROUNDS = 2_000;
const plan = planOf(4711, ROUNDS);

describe('the plan of a run', () => {
  it('depends only on its seed, and each round on its number', () => {
    expect(planOf(4711, ROUNDS)).toEqual(plan);
    expect(planOf(4711, 7)).toEqual(plan.slice(0, 7));
    expect(planOf(4712, ROUNDS)).not.toEqual(plan);
  });

  it('has each fault of each part in some round, and no two equal rounds', () => {
    const kinds = new Set(plan.flatMap(({ faults }) => faults.map(({ kind, part }) => `${kind} ${part}`)));
    expect(kinds.size).toBe(4 * 6 + 7 + 5 + 5 + 2);
    expect(new Set(plan.map(describeRound)).size).toBe(ROUNDS);
  });

  it('has pairs and triples that overlap in time and affect different containers', () => {
    for (const { faults } of plan) {
      expect([2, 3]).toContain(faults.length);
      const [lastBegun, firstEnded] = [Math.max(...faults.map(begin)), Math.min(...faults.map(end))];
      expect(firstEnded - lastBegun).toBeGreaterThanOrEqual(1_000);
      const containers = faults.flatMap(({ part, replicas }) => replicas.map((index) => `${part} ${index}`));
      expect(new Set(containers).size).toBe(containers.length);
    }
  });

  it('has only pairs if requested', () => {
    expect(planOf(1, 100, { triples: false }).every(({ faults }) => faults.length === 2)).toBe(true);
  });

  it('has no fault that prevents every answer, and no loss of the books', () => {
    const all = plan.flatMap(({ faults }) => faults);
    expect(all.filter(({ part, kind }) => part === 'haproxy' && kind !== 'kill' && kind !== 'restart')).toEqual([]);
    expect(all.filter(({ part, kind }) => part !== 'redis' && kind === 'empty')).toEqual([]);
  });
});

const begin = ({ beginMs }: PlannedFault) => beginMs;
const end = ({ endMs }: PlannedFault) => endMs;
