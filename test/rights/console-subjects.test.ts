import { ASKERS, type Subject } from '@tollgate/contracts';
import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

const SOURCES = resolve(__dirname, '../../apps/console/src');

/** The subjects that the sources of the console name in a request. */
function asked(): Set<string> {
  const files = readdirSync(SOURCES, { recursive: true, encoding: 'utf8' });
  const sources = files.filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'));
  const subjects = sources.flatMap((name) =>
    [...readFileSync(join(SOURCES, name), 'utf8').matchAll(/'((?:auth|metering|billing)\.\w+(?:\.\w+)?)'/g)].map(
      ([, subject]) => subject!,
    ),
  );
  return new Set(subjects.filter((subject) => subject in ASKERS));
}

it('the console may ask exactly what it asks', () => {
  const allowed = (Object.keys(ASKERS) as Subject[]).filter((subject) => ASKERS[subject].includes('console'));
  expect(allowed.length).toBeGreaterThan(20);
  expect(allowed.sort()).toEqual([...asked()].sort());
});
