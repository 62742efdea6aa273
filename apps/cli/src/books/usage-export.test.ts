import { Writable } from 'node:stream';
import type { Context } from '../command/context';
import { OperatorClient } from '../command/operator-client';
import { exportUsage } from './usage-export';

const client = new OperatorClient({ url: 'http://operator', secret: 'secret' });

/** The client, whose next answer is `text`. */
function answering(text: string): OperatorClient {
  jest.spyOn(globalThis, 'fetch').mockResolvedValueOnce(new Response(text));
  return client;
}

afterEach(() => jest.restoreAllMocks());

describe('an export of usage', () => {
  it('is not taken for an empty one when its reader leaves before the first line', async () => {
    const gone = new Writable({
      write: (_chunk, _encoding, done) => done(Object.assign(new Error('gone'), { code: 'EPIPE' })),
    });
    expect(await answering('a line\n').download('/usage/export', gone)).toBeNull();
    const taken = new Writable({ write: (_chunk, _encoding, done) => done() });
    expect(await answering('a line\n').download('/usage/export', taken)).toBe(1);
  });

  it('that the server breaks off is a failure', async () => {
    const broken = new ReadableStream({
      pull: (controller) => controller.error(new TypeError('terminated')),
    });
    jest.spyOn(globalThis, 'fetch').mockResolvedValueOnce(new Response(broken));
    const out = new Writable({ write: (_chunk, _encoding, done) => done() });
    await expect(client.download('/usage/export', out)).rejects.toThrow('broke off (terminated)');
  });

  it.each([
    ['csv', null, 0],
    ['csv', 1, 1],
    ['csv', 2, 0],
    ['ndjson', null, 0],
    ['ndjson', 0, 1],
  ])('as %s with %s lines is noted as empty: %s', async (format, lines, notes) => {
    const note = jest.fn();
    const context = { client: { download: () => Promise.resolve(lines) }, output: { note } };
    await exportUsage(context as unknown as Context, { format, step: 'request' });
    expect(note).toHaveBeenCalledTimes(notes);
  });
});
