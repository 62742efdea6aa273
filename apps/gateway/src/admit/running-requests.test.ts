import { type Running, RunningRequests } from './running-requests';

const request = (startedMs: number, more: Partial<Running> = {}): Running => ({
  tenantId: 'ten_a',
  keyId: 'key_a',
  model: 'm',
  startedMs,
  ...more,
});
const OF_TENANT = { tenantId: 'ten_a', keyId: null };

/** Requests whose model takes `lengthMs`. */
function known(lengthMs: number, model = 'm'): RunningRequests {
  const requests = new RunningRequests();
  const first = request(0, { model });
  requests.began(first);
  requests.ended(first, lengthMs);
  return requests;
}

describe('the expected end of running requests', () => {
  it('is unknown while nothing runs, or before a request of the model has ended', () => {
    expect(known(6_000).soonestEndMs(OF_TENANT, 0)).toBeNull();
    const requests = known(6_000, 'other');
    requests.began(request(0));
    expect(requests.soonestEndMs(OF_TENANT, 1_000)).toBeNull();
  });

  it('counts how long a request has run already', () => {
    const requests = known(6_000);
    requests.began(request(10_000));
    expect(requests.soonestEndMs(OF_TENANT, 14_000)).toBe(2_000);
  });

  it('is not shorter because several began together', () => {
    const requests = known(4_000);
    for (let i = 0; i < 4; i++) requests.began(request(10_000));
    expect(requests.soonestEndMs(OF_TENANT, 11_000)).toBe(3_000);
  });

  it('uses the mean of each model, and for a key only its own requests', () => {
    const requests = known(30_000);
    const quick = request(0, { model: 'quick' });
    requests.began(quick);
    requests.ended(quick, 5_000);
    requests.began(request(0));
    requests.began(request(0, { model: 'quick', keyId: 'key_b' }));
    expect(requests.soonestEndMs(OF_TENANT, 1_000)).toBe(4_000);
    expect(requests.soonestEndMs({ tenantId: 'ten_a', keyId: 'key_a' }, 1_000)).toBe(29_000);
    expect(requests.soonestEndMs({ tenantId: 'ten_b', keyId: null }, 1_000)).toBeNull();
  });

  it('is for an overdue request as far away as it is overdue, from a second to a minute', () => {
    const requests = known(5_000);
    const overdue = request(0);
    requests.began(overdue);
    const waits = [5_000, 5_500, 13_000, 500_000].map((nowMs) => requests.soonestEndMs(OF_TENANT, nowMs));
    expect(waits).toEqual([1_000, 1_000, 8_000, 60_000]);
    requests.ended(overdue, 500_000);
    expect(requests.soonestEndMs(OF_TENANT, 500_000)).toBeNull();
  });

  it('follows the lengths of the last requests', () => {
    const requests = known(8_000);
    const longer = request(0);
    requests.began(longer);
    requests.ended(longer, 16_000);
    requests.began(request(20_000));
    expect(requests.soonestEndMs(OF_TENANT, 20_000)).toBe(9_000);
    // Repeats are harmless.
    requests.ended(longer, 99_000);
    expect(requests.soonestEndMs(OF_TENANT, 20_000)).toBe(9_000);
  });
});
