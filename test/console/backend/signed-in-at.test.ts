import { useTestDatabase } from '@tollgate/testing';
import { execFile } from 'node:child_process';
import { resolve } from 'node:path';
import { promisify } from 'node:util';

const SCRIPT = resolve(__dirname, 'signed-in-at.mjs');
const ADA = 'ada@example.com';
const database = useTestDatabase();
const ended = new AbortController();
afterAll(() => ended.abort());

let printed: Record<string, unknown>;
let log: string;
beforeAll(async () => {
  const run = await promisify(execFile)(process.execPath, [SCRIPT, database.url], { signal: ended.signal });
  log = run.stderr;
  printed = JSON.parse(run.stdout) as Record<string, unknown>;
});

it('an account belongs to its issuer: an equal subject of another one gets an account of its own', () => {
  expect(printed).toMatchObject({
    first: ADA,
    sameSubjectElsewhere: 'bob@example.com',
    sameSubjectAgain: 'bob@example.com',
    backAtFirst: ADA,
  });
});

it('subjects of the first issuer are stored as by former versions, which may run beside this one', () => {
  expect(printed).toMatchObject({ stored: ['1', '2', 'second 1', 'second ada'] });
});

it('another subject of the same issuer with the same address is refused until the person connects it', () => {
  expect(printed).toMatchObject({
    otherSubject: 'another_subject',
    otherSubjectConnected: null,
    otherSubjectAfterwards: ADA,
  });
});

it('after a change of the issuer, a proven address opens its account', () => {
  expect(printed).toMatchObject({ sameAddressElsewhere: ADA });
});

it('a profile of another subject than that of the ID token is refused, and so is an answer without ID token', () => {
  expect(printed).toMatchObject({ foreignProfile: 'unable_to_get_user_info', noIdToken: 'unable_to_get_user_info' });
});

it('an issuer that stops answering during a sign-in does not hold it', () => {
  expect(printed).toMatchObject({ 'silentAt/token': 'UnavailableError', 'silentAt/profile': 'UnavailableError' });
});

it('an issuer that hangs up during a sign-in counts as one that does not answer', () => {
  expect(printed).toMatchObject({ 'hangsUpAt/token': 'UnavailableError', 'hangsUpAt/profile': 'UnavailableError' });
});

it('an issuer that names itself otherwise is none, and the log has the name', () => {
  expect(printed).toMatchObject({ offersMisnamed: false });
  expect(log).toMatch(/"reason":"its discovery document names the issuer/);
});

it('no token of the issuer is stored', () => {
  expect(printed).toMatchObject({ rowsWithTokens: 0 });
});
