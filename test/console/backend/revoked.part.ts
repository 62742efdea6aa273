import { eventually, inForceAfterMs } from '@tollgate/testing';
import type { BrowserSession } from '../running/browser';
import { API, type Role } from '../running/people';
import { expectWithin } from './promptly';

/** From the answer that revokes a token. */
const REVOKED_WITHIN_MS = 1_000;

interface Issued {
  id: string;
  token: string;
}

/** Tokens that are revoked on their page. */
export function revokedTests(
  deployed: () => { of: (role: Role) => BrowserSession; tenantId: string; managementUrl: string },
): void {
  it('a revoked token is refused within a second of the answer, and others are not', async () => {
    const { of, tenantId, managementUrl } = deployed();
    const tokens = `${API}/tenants/${tenantId}/tokens`;
    const issue = async (name: string) =>
      (await of('owner').post(tokens, { name, scopes: ['tokens:read'] })).json as Issued;
    const answerTo = async ({ token }: Issued) => {
      const answer = await fetch(`${managementUrl}/tokens`, { headers: { authorization: `Bearer ${token}` } });
      const { error } = (await answer.json()) as { error?: { code: string } };
      return [answer.status, error?.code ?? null];
    };
    const kept = await issue('kept');
    let tries = 0;
    const revokeMs = async () => {
      const revoked = await issue(`revoked ${++tries}`);
      await eventually(async () => expect(await answerTo(revoked)).toEqual([200, null]));
      expect((await of('owner').send('DELETE', `${tokens}/${revoked.id}`)).status).toBe(204);
      return inForceAfterMs(async () => expect(await answerTo(revoked)).toEqual([401, 'token_revoked']));
    };
    await expectWithin(REVOKED_WITHIN_MS, revokeMs, () => answerTo(kept));
    await eventually(async () => expect(await answerTo(kept)).toEqual([200, null]));
  });
}
