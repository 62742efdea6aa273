import { costNanos } from '@tollgate/contracts';
import { eventually } from '@tollgate/testing';
import { LOCKED_WITHIN_MS, lockedStream } from './locked-stream';
import { expectSettledAt, useGateway } from './use-gateway';

const gateway = useGateway();
/** Of the connection that waits for the lock to extend. */
async function waitingPid(): Promise<number> {
  const waiting = await gateway.database.query<{ pid: number }>(
    `SELECT pid FROM pg_stat_activity
      WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%extend(%'`,
  );
  expect(waiting).toHaveLength(1);
  return waiting[0]!.pid;
}

describe('an extension', () => {
  it('is asked for in time: while it is under way the client gets what is left of the slice, and no pause', async () => {
    const caller = await gateway.caller();
    const { answer, release } = await lockedStream(gateway, caller, { answerTokens: 2_000 });
    const reader = (await answer).body!.getReader();
    let text = '';
    const tokens = () => text.match(/"content":"[^"]/g)?.length ?? 0;
    // A slice is 1,024 tokens; by 768 the extension was asked for, and nobody answers it.
    while (tokens() < 1_000) text += Buffer.from((await reader.read()).value!).toString();
    await eventually(waitingPid);
    expect(tokens()).toBeLessThanOrEqual(1_024);
    await release();
    for (let part = await reader.read(); !part.done; part = await reader.read())
      text += Buffer.from(part.value).toString();
    expect(tokens()).toBe(2_000);
    expect(text).toContain('"finish_reason":"stop"');
    const [event] = await gateway.events(caller.tenantId, 1);
    expect(event).toMatchObject({ outcome: 'complete', completionTokens: 2_000 });
  });

  it('that the store did not answer is asked for again: the stream goes on to its own end', async () => {
    const caller = await gateway.caller();
    // What is held lasts for 1.7 s after the first try, and the client would wait for one more: time to give the lock free.
    const { answer, release } = await lockedStream(gateway, caller, { answerTokens: 1_300, tokensPerSecond: 150 });
    const text = answer.then((response) => response.text());
    // Both tries fail, as their connections break.
    let broken = 0;
    for (let tries = 0; tries < 2; tries++) {
      broken = await eventually(
        async () => {
          const pid = await waitingPid();
          expect(pid).not.toBe(broken);
          return pid;
        },
        { timeoutMs: 5 * LOCKED_WITHIN_MS, everyMs: 5 },
      );
      await gateway.database.query('SELECT pg_terminate_backend($1)', [broken]);
    }
    await release();
    expect(await text).toContain('"finish_reason":"stop"');
    const [event] = await gateway.events(caller.tenantId, 1);
    expect(event).toMatchObject({ outcome: 'complete', completionTokens: 1_300 });
    // What a try may have held more is given back.
    await expectSettledAt(gateway, caller, costNanos(event!, event!.price));
  });
});
