import type { AdmissionStore } from '@tollgate/admission';
import { newId } from '@tollgate/contracts';
import { configureLogging } from '@tollgate/runtime';
import { updateAfterBooking } from './update-admission';

const update = { tenantId: newId('ten'), version: '1', balanceNanos: '5', releases: [], suspended: false };
const store = (applyBalanceUpdates: () => Promise<void>) => ({ applyBalanceUpdates }) as unknown as AdmissionStore;
configureLogging({ level: 'silent', pretty: false });

it('a booking is answered even if the admission store hangs or refuses', async () => {
  await updateAfterBooking(
    store(() => new Promise(() => {})),
    update,
    10,
  );
  await updateAfterBooking(
    store(() => Promise.reject(new Error('away'))),
    update,
  );
});

it('a booking waits for a store that answers', async () => {
  let heard = false;
  const slow = store(async () => {
    await new Promise((resolve) => setImmediate(resolve));
    heard = true;
  });
  await updateAfterBooking(slow, update);
  expect(heard).toBe(true);
});
