import { onceServed } from '@tollgate/testing';

/**
 * Reads a stream to its end that is longer than what is held for it at its admission, so that the hold is extended.
 * @returns our id of the request
 */
export async function longStream({ inferenceUrl }: { inferenceUrl: string }, key: string): Promise<string> {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  const body = JSON.stringify({
    model: 'sim-small',
    messages: [{ role: 'user', content: 'A long story' }],
    stream: true,
    simulator: { tokensPerSecond: 4_000, answerTokens: 3_600 },
  });
  const answer = await onceServed(() => fetch(`${inferenceUrl}/chat/completions`, { method: 'POST', headers, body }));
  expect(answer.status).toBe(200);
  await answer.text();
  return answer.headers.get('x-request-id')!;
}
