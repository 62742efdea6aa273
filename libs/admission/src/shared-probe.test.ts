import { eventually } from '@tollgate/testing';
import { SharedProbe } from './shared-probe';

it('a store is probed once for all callers of a second, and again when any outcome is old', async () => {
  let asked = 0;
  let refuses = true;
  const probe = new SharedProbe(async () => {
    asked++;
    await Promise.resolve();
    if (refuses) throw new Error('disk full');
  }, 1);
  const first = await Promise.allSettled([probe.check(), probe.check(), probe.check()]);
  expect(first.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected']);
  expect(asked).toBe(1);
  refuses = false;
  await eventually(() => probe.check());
  expect(asked).toBe(2);
});

it('no second probe starts while one is in progress', async () => {
  let asked = 0;
  const probe = new SharedProbe(() => {
    asked++;
    return new Promise(() => {});
  }, 0);
  void probe.check();
  void probe.check();
  await new Promise((resolve) => setImmediate(resolve));
  void probe.check();
  expect(asked).toBe(1);
});
