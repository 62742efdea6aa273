import type { AdmissionClient, Settlement } from '@tollgate/admission';
import { UnavailableError } from '@tollgate/contracts';
import type { UsageEmitter } from './emitter';
import { DELIVERED, heldStream } from './held-request.fixture';
import { Settlements } from './settlement';
import type { UnbilledReports } from './unbilled-reports';

/** Settlements at a store that settles everything, and what was done, in order. */
function settlements() {
  const done: string[] = [];
  const client = {
    untrack: () => void done.push('untrack'),
    settle: ({ event }: Settlement) => {
      done.push(`settle at ${event.costNanos}, overrun ${event.overrunNanos}`);
      return Promise.resolve({ kind: 'settled', repeated: false, event });
    },
  };
  const idle = { note: () => {} };
  const made = new Settlements(
    client as unknown as AdmissionClient,
    idle as unknown as UsageEmitter,
    idle as unknown as UnbilledReports,
  );
  return { done, made };
}

/** A hold of 10 nanos that can be raised to 12. */
const raisable = (done: string[]) => ({
  heldNanos: 10n,
  raiseTo: (nanos: bigint) => {
    done.push(`raise to ${nanos}`);
    return Promise.resolve(12n);
  },
});

describe('the hold of a stream', () => {
  it('is raised to the cost that a backend reported, while the heartbeat renews it, and then settled', async () => {
    const { done, made } = settlements();
    const settled = await made.settle(heldStream(7), { ...DELIVERED, allowance: raisable(done) }, null);
    expect(settled!.event.life).toMatchObject({ heldNanos: '10', endNanos: '12' });
    expect(done).toEqual(['raise to 14', 'untrack', 'settle at 12, overrun 2']);
  });

  it('is not raised for our own count', async () => {
    const { done, made } = settlements();
    await made.settle(heldStream(5), { ...DELIVERED, allowance: raisable(done), isReported: false }, null);
    expect(done).toEqual(['untrack', 'settle at 10, overrun 0']);
  });

  it('expires if the raise fails: it is neither renewed nor settled', async () => {
    const { done, made } = settlements();
    const away = new UnavailableError('the store is unavailable');
    const allowance = { heldNanos: 10n, raiseTo: () => Promise.reject(away) };
    await expect(made.settle(heldStream(7), { ...DELIVERED, allowance }, null)).rejects.toBe(away);
    expect(done).toEqual(['untrack']);
  });
});

it('the hold of a plain answer is settled as it was admitted', async () => {
  const { done, made } = settlements();
  await made.settle(heldStream(7), DELIVERED, null);
  expect(done).toEqual(['untrack', 'settle at 10, overrun 4']);
});
