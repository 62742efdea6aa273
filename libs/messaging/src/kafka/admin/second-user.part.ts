import { newId } from '@tollgate/contracts';
import { eventually } from '@tollgate/testing';
import type { KafkaConnection } from '../client/connection';
import { KafkaMessages } from '../kafka-messages';
import { TEST_IDENTITY } from '../sign/test-identity.fixture';
import { applyRights, findRights } from './apply-rights';
import { DEFAULT_PRINCIPALS } from './rights-plan';
import { applyScramUsers } from './scram-users';

const LIMIT_MS = 60_000;
const SECOND = { name: 'gateway-b', password: 'the password of the second user' };

interface Brokers {
  topicPrefix: string;
  administrator: () => KafkaConnection;
  /** The connection of a user. */
  connectionOf: (name: string, password: string) => KafkaConnection;
  /** The connection of the gateway's first user. */
  first: () => KafkaConnection;
}

/** The change of a Kafka password without a moment in which a replica cannot connect (docs/operating/secrets.md). */
export function itServesWithASecondUser({ topicPrefix, administrator, connectionOf, first }: Brokers): void {
  it('a second user of a service serves beside the first one, which keeps its rights', async () => {
    await applyScramUsers(administrator(), [SECOND]);
    const principals = { ...DEFAULT_PRINCIPALS, gateway: `User:${SECOND.name}` };
    await applyRights(administrator(), { topicPrefix, principals });
    const identity = { ...TEST_IDENTITY, services: ['gateway' as const] };
    const open = (connection: KafkaConnection) => new KafkaMessages({ connection, topicPrefix, identity });
    const both = [open(first()), open(connectionOf(SECOND.name, SECOND.password))];
    try {
      for (const messages of both) {
        messages.consume('credit-news', 'admission', () => Promise.resolve());
        await eventually(() => messages.start(), { timeoutMs: LIMIT_MS });
        await messages.publish('usage-events', [{ tenantId: newId('ten') } as never]);
        await eventually(() => messages.check(), { timeoutMs: LIMIT_MS });
      }
    } finally {
      await Promise.all(both.map((messages) => messages.close()));
    }
    for (const options of [{ topicPrefix }, { topicPrefix, principals }]) {
      const states = (await findRights(administrator(), options)).map(({ state }) => state);
      expect(new Set(states)).toEqual(new Set(['there']));
    }
  });
}
