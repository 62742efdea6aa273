// The sign-in on the database of the argument, with an issuer that takes connections and gives no answer. Prints what
// works meanwhile, and ends when the issuer's late answer counts. Jest cannot load the library.
import { once } from 'node:events';
import { createServer } from 'node:http';
import { setImmediate } from 'node:timers/promises';
import databases from '../../../apps/console/dist/database.js';
import signIns from '../../../apps/console/dist/sign-in/sign-in.js';

const unanswered = [];
const server = createServer((_, response) => unanswered.push(response)).listen(0, '127.0.0.1');
await once(server, 'listening');
const issuer = `http://127.0.0.1:${server.address().port}`;
const oidc = { issuer, clientId: 'tollgate', clientSecret: 'secret', domains: [], rolesClaim: 'groups', roles: [] };
const database = await databases.openConsoleDatabase(process.argv[2]);

const signIn = new signIns.SignIn(database, { secret: 'a'.repeat(64), oidc });
await signIn.serveAt('http://localhost:8080');
const asked = unanswered.length;
const offers = await signIn.hasOidc();
const session = await signIn.sessionOf(new Headers());
const password = await signIn.isPassword('nobody', 'a password');
const { authCookies } = await signIn.auth.$context;
const { sameSite } = authCookies.sessionToken.attributes;

const urls = { authorization_endpoint: issuer, token_endpoint: issuer, jwks_uri: issuer };
unanswered[0].setHeader('content-type', 'application/json').end(JSON.stringify({ issuer, ...urls }));
while (!(await signIn.hasOidc())) await setImmediate();

process.stdout.write(JSON.stringify({ asked, offers, session, password, sameSite }));
server.close();
server.closeAllConnections();
await database.destroy();
