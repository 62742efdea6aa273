// A real OpenID Connect provider (oidc-provider) in a process of its own. It prints its issuer. Its parent sends
// { secret } to change the client's secret. Everybody of PEOPLE signs in with any password.
import Provider from 'oidc-provider';
import { createServer } from 'node:http';

const PEOPLE = JSON.parse(process.argv[2]);
const CLIENT = 'tollgate';
let secret = process.argv[3];

const server = createServer((request, response) => provider.callback()(request, response));
await new Promise((listening) => server.listen(0, '127.0.0.1', listening));
const issuer = `http://127.0.0.1:${server.address().port}`;

/** Keeps everything in memory, and the client with its present secret. */
class Store {
  static rows = new Map();
  constructor(kind) {
    this.kind = kind;
  }
  key = (id) => `${this.kind} ${id}`;
  async upsert(id, payload) {
    Store.rows.set(this.key(id), payload);
    if (payload.uid) Store.rows.set(this.key(`uid ${payload.uid}`), payload);
  }
  async find(id) {
    if (this.kind !== 'Client') return Store.rows.get(this.key(id));
    return id === CLIENT ? { client_id: CLIENT, client_secret: secret, redirect_uris: [`${issuer}/any`] } : undefined;
  }
  findByUid = async (uid) => Store.rows.get(this.key(`uid ${uid}`));
  async consume(id) {
    const row = Store.rows.get(this.key(id));
    if (row) row.consumed = Math.floor(Date.now() / 1_000);
  }
  async destroy(id) {
    Store.rows.delete(this.key(id));
  }
  async revokeByGrantId(grantId) {
    for (const [key, row] of Store.rows) if (row.grantId === grantId) Store.rows.delete(key);
  }
}

const provider = new Provider(issuer, {
  adapter: Store,
  claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name', 'groups'] },
  findAccount: (_context, id) => PEOPLE[id] && { accountId: id, claims: () => ({ sub: id, ...PEOPLE[id] }) },
  async loadExistingGrant({ oidc }) {
    const grant = new provider.Grant({ clientId: oidc.client.clientId, accountId: oidc.session.accountId });
    grant.addOIDCScope('openid email profile');
    await grant.save();
    return grant;
  },
});
// The console's port is known only after the console asked this issuer for its addresses.
provider.Client.prototype.redirectUriAllowed = (uri) =>
  new URL(uri).hostname === 'localhost' && new URL(uri).pathname === '/console/api/auth/callback/oidc';

process.on('message', (told) => {
  secret = told.secret;
  process.send({ changed: true });
});
process.on('disconnect', () => process.exit());
process.send({ issuer });
