import { eventually } from '@tollgate/testing';
import type { RequestBooks, RequestList } from '../../../apps/console/src/api/answers';
import type { BrowserSession } from '../running/browser';
import { longStream } from '../books/long-stream.fixture';
import { shortRequest } from '../books/short-request.fixture';
import { API, type Role } from '../running/people';

const ARRIVES_WITHIN_MS = 120_000;

/** A request on the list and in its sheet. */
export function requestTests(
  deployed: () => {
    operator: BrowserSession;
    of: (role: Role) => BrowserSession;
    tenantId: string;
    inferenceUrl: string;
  },
): void {
  it('a long stream has its first token, what was held, and how often that was extended', async () => {
    const { operator, of, inferenceUrl, tenantId } = deployed();
    const { id } = (await operator.post(`${API}/operator/tenants`, { name: 'Streaming' })).json as { id: string };
    const credit = { kind: 'topup', amountCents: 1_000, reason: 'to stream', ref: 'stream-1' };
    await operator.post(`${API}/operator/tenants/${id}/credit`, credit);
    const { key } = (await operator.post(`${API}/tenants/${id}/keys`, { name: 'streaming' })).json as { key: string };
    const requestId = await longStream({ inferenceUrl }, key);
    const path = `${API}/tenants/${id}/requests`;
    await eventually(
      async () => {
        const { data } = (await operator.get(path)).json as RequestList;
        expect(data).toMatchObject([{ id: requestId, firstMs: expect.any(Number) }]);
      },
      { timeoutMs: ARRIVES_WITHIN_MS },
    );
    const sheet = await operator.get(`${path}/${requestId}`);
    const { event, life } = sheet.json as RequestBooks;
    expect(life!.extensions).toBeGreaterThan(0);
    expect(BigInt(life!.endNanos)).toBeGreaterThan(BigInt(life!.heldNanos));
    expect(life!.firstMs).toBeLessThanOrEqual(Date.parse(event.endedAt) - Date.parse(event.startedAt) + 1);
    // Where it ran is the operator's own business.
    expect(event).not.toHaveProperty('backend');
    expect(sheet.text).not.toContain('http');
    for (const other of [`${API}/tenants/${tenantId}/requests/${requestId}`, `${path}/A-name-of-its-caller`]) {
      const refused = await (other.startsWith(path) ? operator : of('owner')).get(other);
      expect([refused.status, refused.json.error.code]).toEqual([404, 'not_found']);
    }
  });

  it('requests are found by the id that their callers chose, each by its own tenant only', async () => {
    const { operator, of, tenantId, inferenceUrl } = deployed();
    const callersId = 'order-17';
    const tenants: string[] = [];
    const own: string[][] = [];
    for (const name of ['Ordering', 'Ordering too']) {
      const { id } = (await operator.post(`${API}/operator/tenants`, { name })).json as { id: string };
      const credit = { kind: 'topup', amountCents: 100, reason: 'to order', ref: `order-${tenants.length}` };
      await operator.post(`${API}/operator/tenants/${id}/credit`, credit);
      const { key } = (await operator.post(`${API}/tenants/${id}/keys`, { name: 'ordering' })).json as { key: string };
      tenants.push(id);
      own.push([]);
      // One tenant has used it twice.
      for (let n = tenants.length; n <= 2; n++) own.at(-1)!.push(await shortRequest({ inferenceUrl }, key, callersId));
      await shortRequest({ inferenceUrl }, key, 'order-18');
    }
    for (const [index, id] of tenants.entries())
      await eventually(
        async () => {
          const path = `${API}/tenants/${id}/requests?callerRequestId=${callersId}`;
          const { data, nextCursor } = (await operator.get(path)).json as RequestList;
          expect([data.map((row) => row.id).sort(), nextCursor]).toEqual([own[index]!.sort(), null]);
        },
        { timeoutMs: ARRIVES_WITHIN_MS },
      );
    const at = (id: string) => `${API}/tenants/${id}/requests?callerRequestId=${callersId}`;
    expect((await of('owner').get(at(tenantId))).json).toEqual({ data: [], nextCursor: null });
    expect((await of('owner').get(at(tenants[0]!))).status).toBe(404);
    const wrong = await operator.get(`${API}/tenants/${tenants[0]}/requests?callerRequestId=a%20b`);
    expect([wrong.status, wrong.json.error.code]).toEqual([400, 'invalid_parameter']);
  });
}
