import { newId, type RefusedRequest } from '@tollgate/contracts';
import { RefusalSamples } from './refusal-samples';

const tenantId = newId('ten');
function refused(keyId: string, code = 'credit_held'): RefusedRequest {
  return { id: newId('req'), tenantId, keyId, at: '2026-11-24T10:00:00.000Z', code };
}
/** Notes refused requests and returns them. */
function note(samples: RefusalSamples, keyId: string, count: number, code?: string): RefusedRequest[] {
  const made = Array.from({ length: count }, () => refused(keyId, code));
  for (const one of made) samples.note(keyId, one.code, () => one);
  return made;
}

describe('refused requests that are kept', () => {
  it('are all of them while they are few, and each is sent once', () => {
    const samples = new RefusalSamples();
    const all = [...note(samples, 'a', 3), ...note(samples, 'a', 2, 'api_error'), ...note(samples, 'b', 1)];
    const part = samples.take();
    expect(part).toEqual(all);
    samples.sent(part);
    expect(samples.take()).toEqual([]);
  });

  it('beyond the bound are a sample: a later one replaces a kept one by chance, and dropped ones are not made', () => {
    const chances = [0, 0.99, 0.5];
    const samples = new RefusalSamples(2, 10, () => chances.shift()!);
    const [first, second] = note(samples, 'a', 2);
    // The third one seen takes the first place, the fourth and the fifth take none.
    const [third] = note(samples, 'a', 1);
    const never = () => {
      throw new Error('made in vain');
    };
    samples.note('a', 'credit_held', never);
    samples.note('a', 'credit_held', never);
    expect(samples.take()).toEqual([third, second]);
    expect(first).not.toEqual(third);
  });

  it('of one key leave room for those of others, and all together are bounded', () => {
    const samples = new RefusalSamples(2, 3);
    note(samples, 'flood', 1_000);
    const [other] = note(samples, 'other', 1);
    note(samples, 'late', 1);
    expect(samples.take()).toHaveLength(3);
    expect(samples.take()).toContainEqual(other);
  });

  it('that were not received are taken again, and count against the bound', () => {
    const samples = new RefusalSamples(5, 10);
    for (let key = 0; key < 20; key++) note(samples, `key ${key}`, 1);
    const taken = samples.take();
    expect(taken).toHaveLength(10);
    note(samples, 'more', 1);
    expect(samples.take()).toEqual(taken);
    samples.sent(taken.slice(0, 4));
    const [next] = note(samples, 'more', 1);
    expect(samples.take()).toEqual([...taken.slice(4), next]);
  });

  it('are no more in ten seconds than the bound, however often they are taken', () => {
    jest.useFakeTimers();
    try {
      // The place of the first one, which is on its way.
      const samples = new RefusalSamples(2, 10, () => 0);
      const taken: RefusedRequest[] = [];
      const report = () => {
        const part = samples.take();
        taken.push(...part);
        samples.sent(part);
      };
      const [first] = note(samples, 'a', 1);
      report();
      const [second] = note(samples, 'a', 1);
      report();
      note(samples, 'a', 3);
      report();
      expect(taken).toEqual([first, second]);
      jest.advanceTimersByTime(10_000);
      const next = note(samples, 'a', 2);
      report();
      expect(taken).toEqual([first, second, ...next]);
      // Those that are kept at the end of a round are reported, too.
      jest.advanceTimersByTime(10_000);
      const last = note(samples, 'a', 2);
      jest.advanceTimersByTime(10_000);
      const [new_] = note(samples, 'a', 1);
      report();
      expect(taken.slice(4)).toEqual([...last, new_]);
    } finally {
      jest.useRealTimers();
    }
  });
});
