import { followStream } from './live-source';

/** A browser's stream, whose backend is the test. */
class FakeSource {
  static readonly CLOSED = 2;
  static readonly opened: FakeSource[] = [];
  readyState = 0;
  onmessage!: (event: { data: string }) => void;
  onerror!: () => void;
  private readonly listeners = new Map<string, () => void>();

  constructor(readonly url: string) {
    FakeSource.opened.push(this);
  }

  addEventListener(name: string, listener: () => void): void {
    this.listeners.set(name, listener);
  }

  unchanged(): void {
    this.listeners.get('unchanged')!();
  }

  close(): void {
    this.readyState = FakeSource.CLOSED;
  }
}

beforeEach(() => {
  jest.useFakeTimers();
  FakeSource.opened.length = 0;
  Object.assign(globalThis, { EventSource: FakeSource });
});
afterEach(() => {
  jest.useRealTimers();
  Reflect.deleteProperty(globalThis, 'EventSource');
});

function follow() {
  const heard: string[] = [];
  const close = followStream('/live', {
    onChange: (data) => heard.push(data),
    onUnchanged: () => heard.push('unchanged'),
    onLost: () => heard.push('lost'),
    onAsk: () => heard.push('ask'),
  });
  return { heard, close, newest: () => FakeSource.opened.at(-1)! };
}

it('a stream that falls silent is lost within 10 s, and tried again after that', () => {
  const { heard, close, newest } = follow();
  const [first] = FakeSource.opened;
  first!.onmessage({ data: '1' });
  jest.advanceTimersByTime(9_999);
  expect(heard).toEqual(['1']);
  jest.advanceTimersByTime(1);
  expect([heard, first!.readyState]).toEqual([['1', 'lost'], FakeSource.CLOSED]);
  jest.advanceTimersByTime(10_000);
  expect(FakeSource.opened).toHaveLength(2);
  newest().onmessage({ data: '2' });
  expect(heard).toEqual(['1', 'lost', '2']);
  close();
});

it('a stream whose numbers do not change stays, while it says so', () => {
  const { heard, close } = follow();
  for (let time = 0; time < 10; time++) {
    jest.advanceTimersByTime(5_000);
    FakeSource.opened[0]!.unchanged();
  }
  expect([FakeSource.opened.length, heard]).toEqual([1, Array(10).fill('unchanged')]);
  close();
});

it('a page that only streams asks every hour, so that the session of its viewer is extended', () => {
  const { heard, close } = follow();
  for (let second = 0; second < 2 * 60 * 60; second += 5) {
    FakeSource.opened[0]!.unchanged();
    jest.advanceTimersByTime(5_000);
  }
  expect(FakeSource.opened).toHaveLength(1);
  expect(heard.filter((event) => event !== 'unchanged')).toEqual(['ask', 'ask']);
  close();
});

it('a stream that is never answered is lost, too', () => {
  const { heard, close } = follow();
  jest.advanceTimersByTime(10_000);
  expect(heard).toEqual(['lost']);
  close();
});

it('a refused stream is tried again, and a cut one is left to the browser', () => {
  const { heard, close, newest } = follow();
  newest().onerror();
  jest.advanceTimersByTime(9_000);
  expect([FakeSource.opened.length, heard]).toEqual([1, ['lost']]);
  newest().readyState = FakeSource.CLOSED;
  newest().onerror();
  jest.advanceTimersByTime(10_000);
  expect([FakeSource.opened.length, heard]).toEqual([2, ['lost', 'lost']]);
  close();
});

it('nothing is left of a stream that nobody follows any more', () => {
  const { heard, close, newest } = follow();
  close();
  expect([newest().readyState, jest.getTimerCount(), heard]).toEqual([FakeSource.CLOSED, 0, []]);
  // Also of one that was lost and waits.
  const lost = follow();
  jest.advanceTimersByTime(10_000);
  lost.close();
  expect([jest.getTimerCount(), lost.heard]).toEqual([0, ['lost']]);
});
