import type { BudgetEvent, Charge, KeyRow } from '@tollgate/contracts';
import { EventPattern, MessagePattern } from './patterns';

// The line below each `@ts-expect-error` must not compile. The type check fails if it does.

/** A controller as in every service, with patterns of the tables. */
class Fits {
  @MessagePattern('auth.keys.create')
  async create({ name }: { name: string }): Promise<KeyRow> {
    return { name } as KeyRow;
  }

  @MessagePattern('billing.reconcile.start')
  async start(): Promise<{ id: string }> {
    return { id: '' };
  }

  @EventPattern('charges', 'billing')
  async gather(_batch: readonly Charge[]): Promise<void> {}
}

class DoesNotFit {
  // @ts-expect-error: no such subject
  @MessagePattern('auth.keys.crate')
  async unknownSubject(): Promise<void> {}

  // @ts-expect-error: the request of the subject has no `keyName`
  @MessagePattern('auth.keys.create')
  async otherRequest(_request: { keyName: string }): Promise<KeyRow> {
    return {} as KeyRow;
  }

  // @ts-expect-error: the reply lacks what a KeyRow has
  @MessagePattern('auth.keys.create')
  async otherReply(_request: { name: string }): Promise<{ id: string }> {
    return { id: '' };
  }

  // @ts-expect-error: no such topic
  @EventPattern('changes', 'billing')
  async unknownTopic(): Promise<void> {}

  // @ts-expect-error: the topic has no such group
  @EventPattern('charges', 'metering')
  async unknownGroup(_batch: readonly Charge[]): Promise<void> {}

  // @ts-expect-error: no service consumes the topic
  @EventPattern('budget-events', 'billing')
  async noGroup(_batch: readonly BudgetEvent[]): Promise<void> {}

  // @ts-expect-error: takes each message instead of a batch
  @EventPattern('charges', 'billing')
  async oneByOne(_charge: Charge): Promise<void> {}

  // @ts-expect-error: the batch would be acknowledged before it is handled
  @EventPattern('charges', 'billing')
  acknowledgedEarly(_batch: readonly Charge[]): number {
    return 0;
  }
}

it('a pattern outside the tables, or a method that does not fit its pattern, does not compile', () => {
  // The compiler has checked that. The decorators mark the methods for Nest either way.
  for (const { prototype } of [Fits, DoesNotFit])
    for (const method of Object.getOwnPropertyNames(prototype).filter((name) => name !== 'constructor'))
      expect(Reflect.hasMetadata('microservices:pattern', prototype[method as never])).toBe(true);
});
