import type { ReconcileReport } from '@tollgate/contracts';
import { newestRun } from './newest-run';

const numbers = { events: 1, tenants: 1, differenceCount: 0 };
const running = (id: string, startedAt: string) => ({ id, startedAt, state: 'running', ...numbers }) as const;
const done = (id: string, startedAt: string) =>
  ({ id, startedAt, state: 'done', report: {} as ReconcileReport }) as const;
const [EARLY, LATE] = ['2026-11-30T09:00:00.000Z', '2026-11-30T10:00:00.000Z'];

it.each([
  ['only one is known', undefined, done('a', EARLY), 'latest'],
  ['nothing else ran', done('a', EARLY), null, 'own'],
  ['a later one began', done('a', EARLY), running('b', LATE), 'latest'],
  ['the own one began later', running('b', LATE), done('a', EARLY), 'own'],
  ['the own one has ended, and the other answer is older', done('a', EARLY), running('a', EARLY), 'own'],
  ['it has ended by the other answer', running('a', EARLY), done('a', EARLY), 'latest'],
])('if %s, the page shows that', (_, own, latest, wanted) => {
  expect(newestRun(own, latest)).toBe(wanted === 'own' ? own : latest);
});

it('without any run, the page shows none', () => expect(newestRun(undefined, null)).toBeNull());
