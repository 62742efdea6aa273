import { costNanos } from '@tollgate/contracts';
import { lockedStream } from './locked-stream';
import { expectSettledAt, useGateway } from '../use-gateway';

// In its own file, because its gateway gives the admission store up as soon as a real one does.
const gateway = useGateway({ admissionTimeoutMs: 1_000 });
const TOKENS = 300;

describe('a stream that ends while the admission store is unavailable', () => {
  it('ends with an error event, and is settled for everything that it delivered when the store is back', async () => {
    const caller = await gateway.caller();
    const { answer, release } = await lockedStream(gateway, caller, { answerTokens: TOKENS });
    const text = await (await answer).text();
    expect(text.match(/"content":"[^"]/g)).toHaveLength(TOKENS);
    expect(text).toMatch(/"code":"overloaded_error"\}\}\n\ndata: \[DONE\]\n\n$/);
    await release();
    const [event] = await gateway.events(caller.tenantId, 1);
    expect(event).toMatchObject({ outcome: 'complete', completionTokens: TOKENS, life: { late: true } });
    await expectSettledAt(gateway, caller, costNanos(event!, event!.price));
  });
});
