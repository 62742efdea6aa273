import type { AdmissionStore, Withdrawal } from '@tollgate/admission';

/** The store, with an event right after each withdrawal. */
export function withdrawing(store: AdmissionStore, then: () => Promise<void>): AdmissionStore {
  return new Proxy(store, {
    get(target, name) {
      const value = Reflect.get(target, name) as unknown;
      if (name !== 'withdraw') return typeof value === 'function' ? value.bind(target) : value;
      return async (withdrawal: Withdrawal) => {
        const result = await target.withdraw(withdrawal);
        await then();
        return result;
      };
    },
  });
}
