import type { AdmissionClient, SettleResult } from '@tollgate/admission';
import { UnavailableError, type UsageEvent } from '@tollgate/contracts';
import fs from 'node:fs';
import type { UsageEmitter } from './emitter';
import { DELIVERED, heldStream } from './held-request.fixture';
import { LateSettlements } from './late-settlements';
import { Settlements } from './settlement';
import type { UnbilledReports } from './unbilled-reports';

const AWAY = new UnavailableError('the store is unavailable');

let lines: string;
beforeEach(() => {
  lines = '';
  jest.spyOn(fs, 'writeSync').mockImplementation((_, text: unknown) => {
    lines += String(text);
    return Buffer.byteLength(String(text));
  });
});
afterEach(() => jest.restoreAllMocks());
const logged = () => lines.split('\n').flatMap((line) => (line === '' ? [] : (JSON.parse(line) as object)));

/** Settlements at a store that gives these answers, one after the other. */
function settlements(...answers: (SettleResult | Error)[]) {
  const settle = () => {
    const answer = answers.shift()!;
    return answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer);
  };
  const client = { settle, untrack: () => {} } as unknown as AdmissionClient;
  const idle = { flush: () => Promise.resolve(), note: () => {} };
  return new Settlements(client, idle as unknown as UsageEmitter, idle as unknown as UnbilledReports);
}

describe('a warning about a stream that is settled late names the caller’s request id and the trace', () => {
  it.each<[string, SettleResult | Error, string]>([
    ['the hold is gone when the store is back', { kind: 'forbidden' }, 'the hold was gone before the stream could be'],
    ['the store stays unavailable until the end', AWAY, 'the process stopped before a stream was settled'],
    ['the store refuses it', new RangeError('above the hold'), 'the late settlement of a stream failed'],
  ])('%s', async (_, later, message) => {
    const request = heldStream();
    const all = settlements(AWAY, later);
    await expect(all.settle(request, DELIVERED, null)).rejects.toBe(AWAY);
    // The end of the process does not wait for the next try.
    await all.flush();
    expect(logged()).toEqual([
      expect.objectContaining({ ...request.logged, msg: expect.stringContaining(message) as string }),
    ]);
  });

  it('too many wait', async () => {
    const late = new LateSettlements(() => Promise.resolve(), 1);
    const event = {} as UsageEvent;
    late.add({ event }, { id: 'waits' });
    const request = heldStream();
    late.add({ event }, request.logged);
    await late.flush();
    expect(logged()).toEqual([
      expect.objectContaining({ ...request.logged, msg: expect.stringContaining('too many streams') as string }),
    ]);
  });
});
