import { costNanos } from '@tollgate/contracts';
import { eventually } from '@tollgate/testing';
import { LOCKED_WITHIN_MS, lockedStream } from './locked-stream';
import { useOwnBackend } from '../backends/own-backend';
import { expectSettledAt, useGateway } from '../use-gateway';

const TOKENS = 1_300;
/** Less than a quarter of the slice of 1,024 tokens is left then, so the extension has been requested. */
const AT_ONCE_TOKENS = 800;
/** At this rate the rest of the slice lasts for 11 s, longer than any standstill of this process. */
const TOKEN_EVERY_MS = 50;
let extended = false;
/** A model that sends one token at a time until its stream is extended. */
const yaml = useOwnBackend('hesitant', (request, response) => {
  request.resume();
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  const send = (chunk: object) => response.write(`data: ${JSON.stringify(chunk)}\n\n`);
  let said = 0;
  const goOnTo = (tokens: number) => {
    for (; said < tokens; said++) send({ choices: [{ index: 0, delta: { content: ' word' } }] });
  };
  setTimeout(() => {
    goOnTo(AT_ONCE_TOKENS);
    const timer = setInterval(() => {
      goOnTo(extended ? TOKENS : said + 1);
      if (said < TOKENS) return;
      clearInterval(timer);
      const usage = { prompt_tokens: 9, completion_tokens: TOKENS, total_tokens: TOKENS + 9 };
      send({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }], usage });
      response.end('data: [DONE]\n\n');
    }, TOKEN_EVERY_MS);
    response.once('close', () => clearInterval(timer));
  }, LOCKED_WITHIN_MS);
});
const gateway = useGateway({ yaml });
/** The process id of the connection that waits for the lock to extend. */
async function waitingPid(): Promise<number> {
  const waiting = await gateway.database.query<{ pid: number }>(
    `SELECT pid FROM pg_stat_activity
      WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%extend(%'`,
  );
  expect(waiting).toHaveLength(1);
  return waiting[0]!.pid;
}

describe('an extension', () => {
  it('is requested early enough that the client gets the rest of the slice without a pause', async () => {
    const caller = await gateway.caller();
    const { answer, release } = await lockedStream(gateway, caller, { answerTokens: 2_000 });
    const reader = (await answer).body!.getReader();
    let text = '';
    const tokens = () => text.match(/"content":"[^"]/g)?.length ?? 0;
    // A slice is 1,024 tokens. By 768 the extension has been requested, and the lock delays its answer.
    while (tokens() < 1_000) text += Buffer.from((await reader.read()).value).toString();
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

  it('is requested again if the store did not answer, and the stream runs to its own end', async () => {
    const caller = await gateway.caller();
    const { answer, release } = await lockedStream(gateway, caller, {}, 'hesitant');
    const text = answer.then((response) => response.text());
    // Both tries fail, because their connections break.
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
    const held = async () => {
      const rows = await gateway.database.query<{ nanos: string }>(
        'SELECT hold_nanos AS nanos FROM admission.hold WHERE tenant_id = $1',
        [caller.tenantId],
      );
      return BigInt(rows[0]!.nanos);
    };
    const before = await held();
    await release();
    await eventually(async () => expect(await held()).toBeGreaterThan(before));
    extended = true;
    expect(await text).toContain('"finish_reason":"stop"');
    const [event] = await gateway.events(caller.tenantId, 1);
    expect(event).toMatchObject({ outcome: 'complete', completionTokens: TOKENS });
    // Credit that a failed try may have held is released.
    await expectSettledAt(gateway, caller, costNanos(event!, event!.price));
  });
});
