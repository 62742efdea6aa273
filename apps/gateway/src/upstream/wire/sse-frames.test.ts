import { assertRuns } from '@tollgate/testing';
import * as fc from 'fast-check';
import { ChunkTranslator, type Frame } from './chunk-translator';
import { dataOf, EventTooLongError, FrameSplitter, MAX_EVENT_BYTES } from './sse-frames';

const SEED = 20_261_129;
const MIB = 1024 * 1024;

/** The events of a stream that is pushed in pieces of this size. */
function eventsOf(stream: string, size: number): string[] {
  const splitter = new FrameSplitter();
  const events: string[] = [];
  for (let at = 0; at < stream.length; at += size) {
    splitter.push(stream.slice(at, at + size));
    for (let event = splitter.next(); event !== null; event = splitter.next()) events.push(event);
  }
  return events;
}

function tooLongAfter(push: (splitter: FrameSplitter) => string, most: number): number {
  const splitter = new FrameSplitter();
  for (let bytes = 0; bytes <= most;) {
    const piece = push(splitter);
    bytes += piece.length;
    try {
      while (splitter.next() !== null);
    } catch (error) {
      expect(error).toBeInstanceOf(EventTooLongError);
      expect(error).not.toBeInstanceOf(RangeError);
      return bytes;
    }
  }
  return Infinity;
}

/**
 * The least time of `run` by the least time of `other`. Runs both in turn, at most 20 times, until the ratio is below
 * `enough`: other load on the machine delays some of the runs, and slow code is slow in all of them.
 */
function ratioOfTimes(run: () => void, other: () => void, enough: number): number {
  const msOf = (timed: () => void) => {
    const from = performance.now();
    timed();
    return performance.now() - from;
  };
  let [runMs, otherMs] = [Infinity, Infinity];
  for (let round = 0; round < 20 && (round < 3 || runMs / otherMs >= enough); round++) {
    runMs = Math.min(runMs, msOf(run));
    otherMs = Math.min(otherMs, msOf(other));
  }
  return runMs / otherMs;
}

describe('the events of a stream', () => {
  it('are the same however the stream is split, with any line ends, NUL bytes and invalid UTF-8', async () => {
    const part = fc.constantFrom(
      '\n',
      '\n\n',
      '\r',
      '\r\n',
      '\r\n\r\n',
      'data: a',
      'data:',
      ': c',
      '\0',
      '\xff\xc3',
      'x',
    );
    await assertRuns(
      fc.property(fc.array(part, { maxLength: 40 }), fc.array(fc.nat({ max: 60 })), (parts, cuts) => {
        const stream = parts.join('');
        const plain = stream.replace(/\r\n?/g, '\n');
        const expected = plain.split('\n\n').slice(0, -1);
        const splitter = new FrameSplitter();
        const events: string[] = [];
        let at = 0;
        for (const cut of [...cuts, stream.length]) {
          splitter.push(stream.slice(at, at + cut));
          at += cut;
          // Not always read at once: a client may be slow.
          if (cut % 3 > 0 || at >= stream.length)
            for (let event = splitter.next(); event !== null; event = splitter.next()) events.push(event);
        }
        expect(events).toEqual(expected);
      }),
      { seed: SEED, leastRuns: 2_000 },
    );
    for (const size of [1, 2, 3])
      expect(eventsOf('data: a\r\n\r\ndata: b\r\r: c\n\ndata: d\n\r\n', size)).toHaveLength(4);
  });

  it.each([1, 2, 3, 4, 100])('begin after a byte order mark, in pieces of %i bytes', (size) => {
    const mark = '\xef\xbb\xbf';
    expect(eventsOf(`${mark}data: a\n\n${mark}data: b\n\n`, size)).toEqual(['data: a', `${mark}data: b`]);
    expect(eventsOf('\xef\xbbdata: a\n\n', size)).toEqual(['\xef\xbbdata: a']);
    expect(eventsOf(`${mark}\r\n\r\ndata: a\n\n`, size)).toEqual(['', 'data: a']);
  });

  it.each([1, 7, 1_000, 65_536, 8 * MIB])('are refused at the length limit, in pieces of %i bytes', (size) => {
    const piece = 'a'.repeat(size);
    const endless = tooLongAfter((splitter) => (splitter.push(piece), piece), 8 * MIB);
    expect(endless).toBeGreaterThan(MAX_EVENT_BYTES);
    expect(endless).toBeLessThanOrEqual(MAX_EVENT_BYTES + size);
    const lines = 'data:\n'.repeat(Math.ceil(size / 6));
    expect(tooLongAfter((splitter) => (splitter.push(lines), lines), 9 * MIB)).toBeLessThanOrEqual(
      MAX_EVENT_BYTES + 1 + lines.length,
    );
  });

  it('are accepted at the length limit and refused above it, even with their end in the same piece', () => {
    const splitter = new FrameSplitter();
    splitter.push(`${'a'.repeat(MAX_EVENT_BYTES)}\n\n${'b'.repeat(MAX_EVENT_BYTES + 1)}\n\n`);
    expect(splitter.next()).toHaveLength(MAX_EVENT_BYTES);
    expect(() => splitter.next()).toThrow(EventTooLongError);
  });

  it('take time proportional to their length, even byte by byte', () => {
    const stream = `data: ${'a'.repeat(MIB - 64)}\n\n`;
    for (const size of [1, 100, 16_384]) {
      const joinOnce = () => {
        const pieces: string[] = [];
        for (let at = 0; at < stream.length; at += size) pieces.push(stream.slice(at, at + size));
        expect(pieces.join('')).toHaveLength(stream.length);
      };
      // Every event is joined once, which takes as much memory in both runs. It takes one to four times the time of
      // that, and 40 times if each of the longest pieces is appended to all before.
      expect(ratioOfTimes(() => expect(eventsOf(stream, size)).toHaveLength(1), joinOnce, 12)).toBeLessThan(12);
    }
  });

  it('join 100,000 data lines into one text', () => {
    const data = dataOf(eventsOf(`${'data:x\n'.repeat(100_000)}\n`, 4_096)[0]!);
    expect(data).toHaveLength(199_999);
  });
});

describe('a chunk that cannot be read', () => {
  const read = (stream: string, size = 65_536): Frame[] => {
    const identity = {
      id: 'a',
      object: 'chat.completion.chunk',
      createdSeconds: 1,
      model: 'm',
      includeUsage: false,
    } as const;
    const translator = new ChunkTranslator(identity, 1);
    const frames: Frame[] = [];
    for (let at = 0; at < stream.length && frames.at(-1)?.kind !== 'broken'; at += size) {
      translator.push(stream.slice(at, at + size));
      for (let frame = translator.next(); frame; frame = translator.next()) {
        frames.push(frame);
        if (frame.kind === 'broken') break;
      }
    }
    return frames;
  };
  const deep = (levels: number, finish: string) => {
    const nested = '['.repeat(levels) + ']'.repeat(levels);
    return `data: {"choices":[{"index":0,"delta":{"content":"a","x":${nested}},"finish_reason":${finish}}]}\n\n`;
  };

  it.each([
    ['an event of 7 MiB', `data: {"choices":[{"delta":{"content":"${'a'.repeat(7 * MIB)}"}}]}\n\n`],
    ['a line without end', 'a'.repeat(7 * MIB)],
    ['100,000 levels', deep(100_000, 'null')],
    ['100,000 levels in the last chunk', deep(100_000, '"stop"')],
    ['1,000 levels in the last chunk', deep(1_000, '"stop"')],
    ['NUL bytes', 'data: \0\0\0\n\n'],
    ['half a chunk', 'data: {"choices":[\n\n'],
  ])('breaks the stream: %s', (_, stream) => {
    for (const size of [997, stream.length]) {
      const frames = read(stream, size);
      expect(frames).toEqual([{ kind: 'broken', reason: expect.any(String) }]);
      expect((frames[0] as { reason: string }).reason).not.toMatch(/call stack|string length/i);
    }
  });

  it('is never one that only has brackets in its text', () => {
    const content = JSON.stringify('[{"'.repeat(10_000));
    const frames = read(`data: {"choices":[{"index":0,"delta":{"content":${content}},"finish_reason":null}]}\n\n`);
    expect(frames).toMatchObject([{ kind: 'content', pieces: [{ choice: 0 }] }]);
  });
});
