import { SERVICES, TOPICS, type Service } from '@tollgate/contracts';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { planRights, topicsOf } from './rights-plan';
import { Names, planTopics } from './topic-plan';

const DOCUMENT = resolve(__dirname, '../../../../../docs/rights-kafka.md');
const NO_PREFIX = new Names('');

/** The rights in the document's table. */
function rowsOf(service: Service): string[] {
  const own = planRights(TOPICS, NO_PREFIX).filter(({ principal }) => principal === `User:${service}`);
  const names = new Set(own.map(({ resource, name, prefixed }) => `${resource} \`${name}${prefixed ? '*' : ''}\``));
  return [...names].map((text) => {
    const operations = own
      .filter(({ resource, name, prefixed }) => `${resource} \`${name}${prefixed ? '*' : ''}\`` === text)
      .map(({ operation }) => operation)
      .filter((operation) => operation !== 'DESCRIBE_CONFIGS');
    return `\`${service}\` ${text}: ${operations.join(', ')}`;
  });
}

it('each service has exactly the rights of the document', () => {
  const rows = readFileSync(DOCUMENT, 'utf8').matchAll(
    /^\| (`\w+`) +\| (topic|group) +\| (`[^`]+`) +\| ([A-Z, ]+?) +\|/gm,
  );
  const documented = [...rows].map(
    ([, service, resource, name, rights]) => `${service} ${resource} ${name}: ${rights}`,
  );
  expect(SERVICES.flatMap(rowsOf).sort()).toEqual(documented.sort());
});

it('a service sees the topics that it has rights for, under the prefix, and checks no others', () => {
  const names = new Names('one.');
  for (const service of SERVICES) {
    const own = topicsOf(service, TOPICS, names);
    const all = planTopics(TOPICS, names).map(({ name }) => name);
    expect(all).toEqual(expect.arrayContaining([...own]));
    expect(own.size).toBeLessThan(all.length);
    expect(own.has('one.replies')).toBe(true);
  }
  expect(topicsOf('gateway', TOPICS, names).has('one.charges')).toBe(false);
});

it('no right reaches names of another installation', () => {
  for (const { name } of planRights(TOPICS, new Names('one.'))) expect(name).toMatch(/^one\../);
});
