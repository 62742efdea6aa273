import { MutationObserver, onlineManager, QueryObserver } from '@tanstack/react-query';
import { ApiFailure } from '../../../apps/console/web/src/backend/api';
import { queries } from '../../../apps/console/web/src/backend/queries';

const rejected = new ApiFailure(404, 'not_found', 'It is not retried.', null);
const call = jest.fn<Promise<string>, []>();
beforeEach(() => {
  call.mockReset().mockRejectedValue(rejected);
  queries.mount();
  onlineManager.setOnline(false);
});
afterEach(() => {
  onlineManager.setOnline(true);
  queries.unmount();
  queries.clear();
});

it('without a connection, a write fails at once, and is not made when there is one again', async () => {
  const write = new MutationObserver(queries, { mutationFn: call });
  const settled = new Promise((resolve) => {
    write.subscribe(({ status, isPaused }) => {
      if (isPaused || status === 'error') resolve({ status, isPaused });
    });
  });
  write.mutate().catch(() => {});
  expect(await settled).toEqual({ status: 'error', isPaused: false });
  expect(call).toHaveBeenCalledTimes(1);
  onlineManager.setOnline(true);
  await queries.resumePausedMutations();
  expect(call).toHaveBeenCalledTimes(1);
});

it('without a connection, a question has an error at once, and is asked again when there is one', async () => {
  const question = new QueryObserver(queries, { queryKey: ['keys'], queryFn: call });
  const settled = new Promise((resolve) => {
    question.subscribe(({ status, fetchStatus }) => {
      if (fetchStatus === 'paused' || status === 'error') resolve({ status, fetchStatus });
    });
  });
  expect(await settled).toEqual({ status: 'error', fetchStatus: 'idle' });
  const answered = new Promise((resolve) => {
    question.subscribe(({ data }) => {
      if (data !== undefined) resolve(data);
    });
  });
  call.mockResolvedValue('answer');
  onlineManager.setOnline(true);
  expect(await answered).toBe('answer');
  question.destroy();
});
