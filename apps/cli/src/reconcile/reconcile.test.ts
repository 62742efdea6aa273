import type { Context } from '../command/context';
import { Output } from '../command/output';
import { reconcile } from './reconcile';

const RUNNING = { id: 'rec_1', startedAt: '', state: 'running', events: 1, tenants: 1, differenceCount: 0 };

it('a run of reconcile that fails after its start fails the command, with the reason', async () => {
  const ends = [RUNNING, { id: 'rec_1', startedAt: '', state: 'failed', reason: 'the process is stopping' }];
  const client = {
    post: () => Promise.resolve({ data: RUNNING }),
    get: () => Promise.resolve({ data: ends.shift() }),
  };
  const output = new Output(true);
  const notes = jest.spyOn(output, 'note').mockImplementation();
  const answers = jest.spyOn(output, 'answer').mockImplementation();
  const context = { client, output } as unknown as Context;
  await expect(reconcile(context, { repair: true, yes: true })).rejects.toMatchObject({
    name: 'Failure',
    message: 'the process is stopping',
    code: 'unavailable',
  });
  expect([notes.mock.calls.length, answers.mock.calls.length, ends]).toEqual([2, 0, []]);
});
