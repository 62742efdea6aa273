import { onceServed } from '@tollgate/testing';

/**
 * Sends a short request, and reads its answer.
 * @param callersId that its caller chose
 * @returns our id of it
 */
export async function shortRequest(
  { inferenceUrl }: { inferenceUrl: string },
  key: string,
  callersId?: string,
): Promise<string> {
  const headers = {
    authorization: `Bearer ${key}`,
    'content-type': 'application/json',
    ...(callersId !== undefined && { 'x-request-id': callersId }),
  };
  const body = JSON.stringify({ model: 'sim-small', messages: [{ role: 'user', content: 'Hello' }], max_tokens: 5 });
  const answer = await onceServed(() => fetch(`${inferenceUrl}/chat/completions`, { method: 'POST', headers, body }));
  expect(answer.status).toBe(200);
  await answer.text();
  const id = answer.headers.get('x-tollgate-request-id')!;
  expect(answer.headers.get('x-request-id')).toBe(callersId ?? id);
  return id;
}
