import { SERVICES, type Service } from '@tollgate/contracts';
import type { Admin } from 'kafkajs';
import { withAdmin } from './apply-topics';
import type { KafkaConnection } from '../client/connection';
import { planRights } from './rights-plan';
import type { Names, Topics } from './topic-plan';

const LIMIT_MS = 60_000;

interface Installation {
  topics: Topics;
  names: Names;
  administrator: () => KafkaConnection;
  /** The connection of a service's own user. */
  as: (service: Service) => KafkaConnection;
}

/** The groups that a service's user may remove, on brokers that check the rights of the table. */
export function itRemovesGroupsOfItsOwnRepliesAlone({ topics, names, administrator, as }: Installation): void {
  it('may remove the groups of its own replies, but not those in use or of another service', async () => {
    const administer = <T>(work: (admin: Admin) => Promise<T>) => withAdmin(administrator(), LIMIT_MS, work);
    const remove = (service: Service, group: string) =>
      withAdmin(as(service), LIMIT_MS, (admin) => admin.deleteGroups([group]));
    const groupOf = (service: Service) => `${names.replyGroups(service)}of-a-replica`;
    const position = { topic: names.topic('replies'), partitions: [{ partition: 0, offset: '0' }] };
    for (const service of SERVICES)
      await administer((admin) => admin.setOffsets({ groupId: groupOf(service), ...position }));

    for (const service of SERVICES) {
      // The user may not even look up their coordinator.
      for (const other of SERVICES.filter((each) => each !== service))
        await expect(remove(service, groupOf(other))).rejects.toThrow(/group coordinator/);
      const { name: reads } = planRights(topics, names).find(
        ({ principal, resource, prefixed }) => principal === `User:${service}` && resource === 'group' && !prefixed,
      )!;
      const cause = { groups: [{ groupId: reads, error: { type: 'GROUP_AUTHORIZATION_FAILED' } }] };
      await expect(remove(service, reads)).rejects.toMatchObject({ cause });
    }

    for (const service of SERVICES) await remove(service, groupOf(service));
    const { groups } = await administer((admin) => admin.listGroups());
    expect(groups.filter(({ groupId }) => groupId.endsWith('of-a-replica'))).toEqual([]);
  });
}
