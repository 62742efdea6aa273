import { createHash } from 'node:crypto';
import { SERVICES, servicePairs, type Service } from '@tollgate/contracts';
import { MessageKeys, nameOf, type KeyLine } from './message-keys';
import type { Identity } from './signatures';

/** A key for each pair, the same in every process of a test. */
export const TEST_KEYS: KeyLine[] = servicePairs().map((pair) => ({
  ...pair,
  id: 'test',
  secret: createHash('sha256').update(nameOf(pair)).digest('hex'),
}));

/** One process that plays the parts of all services. */
export const TEST_IDENTITY: Identity = { services: SERVICES, keys: new MessageKeys(TEST_KEYS) };

/** The identity of a process that has the keys of these services only. */
export const keysOf = (...services: Service[]): Identity => ({
  services,
  keys: new MessageKeys(TEST_KEYS.filter(({ from, to }) => services.includes(from) || services.includes(to))),
});
