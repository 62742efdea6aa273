// Signs people in at issuers of this process, on the database of the argument, and prints what became of each. Jest
// cannot load the library.
import accountChanges from '../../../apps/console/dist/sign-in/account-changes.js';
import databases from '../../../apps/console/dist/database.js';
import oidcs from '../../../apps/console/dist/sign-in/oidc.js';
import signIns from '../../../apps/console/dist/sign-in/sign-in.js';
import issuerAnswers from '../../../apps/console/dist/sign-in/issuer-answers.js';
import { startSigningIssuer } from '../running/signing-issuer.mjs';

const ORIGIN = 'http://localhost:8080';
const AUTH = `${ORIGIN}/console/api/auth`;
const ADA = { sub: '1', email: 'ada@example.com', email_verified: true };
const database = await databases.openConsoleDatabase(process.argv[2]);
const [first, second] = await Promise.all([startSigningIssuer(), startSigningIssuer()]);

// A machine that stands still is no issuer that does not answer.
const { setTimeout: start } = globalThis;
const LIMITS_MS = [signIns.ISSUER_WAIT_MS, issuerAnswers.ISSUER_LIMIT_MS];
const patient = (run, ms, ...rest) => start(run, LIMITS_MS.includes(ms) ? 20 * ms : ms, ...rest);
globalThis.setTimeout = patient;

/** The console with this issuer. */
async function consoleAt(issuer) {
  const oidc = { issuer, clientId: 'tollgate', clientSecret: 'secret', rolesClaim: 'groups', roles: [] };
  const signIn = new signIns.SignIn(database, {
    ...{ secret: 'a'.repeat(64), oidc: { ...oidc, domains: ['example.com'] } },
  });
  await signIn.serveAt(ORIGIN);
  return signIn;
}

/** Whose account a person with these claims gets: its address, or the error. */
async function signedIn(signIn, { answers }, claims, call = 'sign-in/social', session = '') {
  answers.claims = claims;
  await database.pool.query('DELETE FROM "rateLimit"');
  const changes = { record: () => Promise.resolve() };
  const made = new accountChanges.AccountCall(changes, {}, null, () => Promise.resolve());
  const found = {};
  const ask = (path, init = {}) =>
    oidcs.providerSignIn.run(found, () =>
      accountChanges.accountCall.run(made, () => signIn.auth.handler(new Request(`${AUTH}/${path}`, init))),
    );
  const begun = await ask(call, {
    method: 'POST',
    headers: { 'content-type': 'application/json', origin: ORIGIN, cookie: session },
    body: JSON.stringify({ provider: 'oidc', callbackURL: '/console/' }),
  });
  const url = new URL((await begun.json()).url);
  answers.nonce = url.searchParams.get('nonce');
  const cookie = [session, ...cookiesOf(begun)].join('; ');
  const query = new URLSearchParams({ code: 'c', state: url.searchParams.get('state') });
  const back = await ask(`callback/oidc?${query}`, { headers: { cookie } });
  if (made.failure) return { error: made.failure.name };
  if (back.status !== 302) return { error: back.status };
  const error = new URL(back.headers.get('location'), ORIGIN).searchParams.get('error');
  if (error !== null || call !== 'sign-in/social') return { error };
  const { rows } = await database.pool.query('SELECT email FROM "user" WHERE id = $1', [found.userId]);
  return { email: rows[0].email, session: cookiesOf(back).find((cookie) => cookie.includes('session_token')) };
}

const cookiesOf = (answer) => answer.headers.getSetCookie().map((cookie) => cookie.split(';', 1)[0]);
const outcome = async (...args) => {
  const { email, error } = await signedIn(...args);
  return email ?? error;
};

const printed = {};
let signIn = await consoleAt(first.issuer);
const { session, email } = await signedIn(signIn, first, ADA);
printed.first = email;
const otherSubject = { ...ADA, sub: '2' };
printed.otherSubject = await outcome(signIn, first, otherSubject);
printed.otherSubjectConnected = await outcome(signIn, first, otherSubject, 'link-social', session);
printed.otherSubjectAfterwards = await outcome(signIn, first, otherSubject);

first.answers.profile = { ...ADA, sub: 'somebody' };
printed.foreignProfile = await outcome(signIn, first, { sub: '1' });
first.answers.hasIdToken = false;
first.answers.profile = ADA;
printed.noIdToken = await outcome(signIn, first, {});
first.answers.hasIdToken = true;

// The time limit ends when the issuer has got the call.
globalThis.setTimeout = (run, ms, ...rest) => {
  if (ms !== issuerAnswers.ISSUER_LIMIT_MS) return patient(run, ms, ...rest);
  first.answers.reached = run;
  return undefined;
};
for (const path of ['/token', '/profile']) {
  first.answers.silentAt = path;
  printed[`silentAt${path}`] = await outcome(signIn, first, { sub: '1' });
}
globalThis.setTimeout = patient;
first.answers.reached = (response) => response.destroy();
for (const path of ['/token', '/profile']) {
  first.answers.silentAt = path;
  printed[`hangsUpAt${path}`] = await outcome(signIn, first, { sub: '1' });
}
first.answers.silentAt = '';

signIn = await consoleAt(second.issuer);
printed.sameSubjectElsewhere = await outcome(signIn, second, { ...ADA, email: 'bob@example.com' });
printed.sameSubjectAgain = await outcome(signIn, second, { ...ADA, email: 'bob@example.com' });
printed.sameAddressElsewhere = await outcome(signIn, second, { ...ADA, sub: 'ada' });
signIn = await consoleAt(`${first.issuer}/`);
printed.backAtFirst = await outcome(signIn, first, { ...ADA, email: 'ada.changed@example.com' });

second.answers.discovery = { issuer: first.issuer };
signIn = await consoleAt(second.issuer);
printed.offersMisnamed = await signIn.hasOidc();

const stored = `SELECT array_agg("accountId" ORDER BY "createdAt") AS ids FROM "account"`;
const [{ ids }] = (await database.pool.query(stored)).rows;
printed.stored = ids.map((id) => id.replace(second.issuer, 'second'));
const tokens = `SELECT FROM "account" WHERE num_nonnulls("idToken", "accessToken", "refreshToken") > 0`;
printed.rowsWithTokens = (await database.pool.query(tokens)).rowCount;

process.stdout.write(JSON.stringify(printed));
first.close();
second.close();
await database.destroy();
