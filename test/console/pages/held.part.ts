import { eventually, onceServed } from '@tollgate/testing';
import type { Overview } from '../../../apps/console/src/api/answers';
import { openPage } from '../browser/looks';
import type { OnPage } from '../running/deployed';

const ARRIVES_WITHIN_MS = 120_000;

/** Credit that a running request holds. */
export function heldTests(deployed: () => OnPage): void {
  it('what a running stream holds is on the overview to the last digit, and gone after its end', async () => {
    const { console_, page, call } = deployed();
    const { id } = (await call('operator/tenants', { name: 'Holding' })) as { id: string };
    const booking = { kind: 'topup', amountCents: 1_000, reason: 'for a stream', ref: 'holding-1' };
    await call(`operator/tenants/${id}/credit`, booking);
    const { key } = (await call(`tenants/${id}/keys`, { name: 'holding' })) as { key: string };
    const left = new AbortController();
    const answer = await onceServed(() =>
      fetch(`${console_.inferenceUrl}/chat/completions`, {
        method: 'POST',
        signal: left.signal,
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: JSON.stringify({
          model: 'sim-small',
          messages: [{ role: 'user', content: 'A long story' }],
          stream: true,
          // It does not end before this test does.
          simulator: { tokensPerSecond: 1, answerTokens: 4_000 },
        }),
      }),
    );
    expect(answer.status).toBe(200);
    const held = page.locator('[data-figure="Held"]');
    try {
      await openPage(page, { base: console_.base, tenantId: id }, ['overview', 'Overview']);
      await eventually(
        async () => {
          const { credit } = (await call(`tenants/${id}/overview`)) as Overview;
          const nanos = credit.admission!.heldNanos;
          expect(BigInt(nanos)).toBeGreaterThan(0n);
          const [whole, decimals] = (await held.textContent())!.replace(' USD', '').split('.');
          expect(BigInt(whole + decimals!.padEnd(9, '0'))).toBe(BigInt(nanos));
        },
        { timeoutMs: ARRIVES_WITHIN_MS },
      );
    } finally {
      left.abort();
    }
    await held.getByText('0.00 USD', { exact: true }).waitFor();
  });
}
