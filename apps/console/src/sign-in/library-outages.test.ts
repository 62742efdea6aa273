import { noteOutage, passingOutages } from './library-outages';

const OUTAGE = Object.assign(new Error('connect ECONNREFUSED 127.0.0.1:5432'), { code: 'ECONNREFUSED' });
const wrapped = new Error('Failed to get session');
/** A call of the library, which logs an error before it fails in its own way. */
const logging = async <T>(error: Error, end: () => T | Promise<T>): Promise<T> => {
  await Promise.resolve();
  noteOutage(['details', error]);
  return end();
};
const failing = () => Promise.reject(wrapped);

it('a call that fails in an outage rejects with the error of the statement', async () => {
  await expect(passingOutages(() => logging(OUTAGE, failing))).rejects.toBe(OUTAGE);
});

it('so does one whose answer says that it failed, and no other', async () => {
  const hasFailed = (status: number) => status >= 400;
  await expect(passingOutages(() => logging(OUTAGE, () => 401), hasFailed)).rejects.toBe(OUTAGE);
  expect(await passingOutages(() => logging(OUTAGE, () => 200), hasFailed)).toBe(200);
  expect(await passingOutages(() => logging(new Error('a mistake'), () => 500), hasFailed)).toBe(500);
});

it('another error stays as it is, and calls at the same time do not mix', async () => {
  const mistaken = passingOutages(() => logging(new Error('a mistake'), failing));
  const away = passingOutages(() => logging(OUTAGE, failing));
  await Promise.all([expect(mistaken).rejects.toBe(wrapped), expect(away).rejects.toBe(OUTAGE)]);
});

it('only an outage in a call is left to its caller: all else is logged', async () => {
  expect(noteOutage([OUTAGE])).toBe(false);
  const noted = await passingOutages(() =>
    Promise.resolve([noteOutage([wrapped]), noteOutage([]), noteOutage([OUTAGE])]),
  );
  expect(noted).toEqual([false, false, true]);
});
