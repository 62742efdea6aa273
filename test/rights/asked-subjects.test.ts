import { ASKERS, type Service, type Subject } from '@tollgate/contracts';
import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

const ROOT = resolve(__dirname, '../..');
const SERVICES: Service[] = ['gateway', 'auth', 'metering', 'billing', 'console'];
/** Names of subjects that ask nothing: what a handler answers, and types. */
const NOT_ASKED = /@MessagePattern\('[\w.]+'\)|(?:RequestOf|ReplyOf)<'[\w.]+'>|\/\*\*.*?\*\//gs;

/** The subjects that the sources of an app or a library name in a request. */
function asked(project: string): Subject[] {
  const folder = join(ROOT, project, 'src');
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  const sources = files.filter((name) => name.endsWith('.ts') && !/\.(test|suite|part|fixture)\.ts$/.test(name));
  const subjects = sources.flatMap((name) => {
    const text = readFileSync(join(folder, name), 'utf8').replace(NOT_ASKED, '');
    return [...text.matchAll(/'((?:auth|metering|billing|console)\.\w+(?:\.\w+)?)'/g)].map(([, subject]) => subject!);
  });
  return subjects.filter((subject): subject is Subject => Object.hasOwn(ASKERS, subject));
}

it.each(SERVICES)('%s may ask exactly what it asks', (service) => {
  const mayAsk = (subject: Subject): boolean => ASKERS[subject].includes(service);
  const allowed = (Object.keys(ASKERS) as Subject[]).filter(mayAsk);
  // Services ask through the library of admission, too.
  const shared = asked('libs/admission').filter(mayAsk);
  expect([...new Set([...asked(`apps/${service}`), ...shared])].sort()).toEqual(allowed.sort());
});
