/**
 * Sends a request with an id that its caller chose.
 * @returns our id of it
 */
export async function namedRequest(
  { inferenceUrl }: { inferenceUrl: string },
  key: string,
  callersId: string,
): Promise<string> {
  const answer = await fetch(`${inferenceUrl}/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', 'x-request-id': callersId },
    body: JSON.stringify({ model: 'sim-small', messages: [{ role: 'user', content: 'Hello' }], max_tokens: 5 }),
  });
  expect(answer.status).toBe(200);
  expect(answer.headers.get('x-request-id')).toBe(callersId);
  await answer.text();
  return answer.headers.get('x-tollgate-request-id')!;
}
