import { MutationObserver, QueryObserver } from '@tanstack/react-query';
import { ApiFailure } from '../../../apps/console/web/src/backend/api';
import { ME, queries } from '../../../apps/console/web/src/backend/queries';

const signedOut = new ApiFailure(401, 'unauthenticated', 'Sign in first.', null);
let asked: jest.Mock<Promise<unknown>>;
let leave: () => void;
beforeEach(async () => {
  asked = jest.fn(() => Promise.resolve('Ada'));
  const me = new QueryObserver(queries, { queryKey: ME, queryFn: asked });
  leave = me.subscribe(() => {});
  await me.refetch();
  asked.mockClear();
});
afterEach(() => {
  leave();
  queries.clear();
});

const ask = (error: ApiFailure) =>
  queries.fetchQuery({ queryKey: ['keys'], queryFn: () => Promise.reject(error) }).catch(() => {});

it('a question that finds no session asks who is signed in', async () => {
  await ask(signedOut);
  expect(asked).toHaveBeenCalledTimes(1);
});

it('a write that finds no session asks, too', async () => {
  const write = new MutationObserver(queries, { mutationFn: () => Promise.reject(signedOut) });
  await write.mutate().catch(() => {});
  expect(asked).toHaveBeenCalledTimes(1);
});

it('any other error does not', async () => {
  await ask(new ApiFailure(404, 'not_found', 'No such key.', null));
  await ask(new ApiFailure(401, 'wrong_password', 'It is wrong.', null));
  expect(asked).not.toHaveBeenCalled();
});

it('who is signed in is asked once, also when nobody is', async () => {
  asked.mockRejectedValue(signedOut);
  await ask(signedOut);
  await queries.refetchQueries({ queryKey: ME });
  expect(asked.mock.calls.length).toBeLessThanOrEqual(2);
  expect(queries.getQueryState(ME)).toMatchObject({ status: 'error', fetchStatus: 'idle' });
});
