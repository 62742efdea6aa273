import type { Dispatcher } from 'undici';

export type Headers = Parameters<NonNullable<Dispatcher.DispatchHandler['onResponseStart']>>[2];

const EVENT_STREAM = /^\s*text\/event-stream\s*(?:;|$)/i;
const JSON_TYPE = /^\s*application\/(?:[\w.-]+\+)?json\s*(?:;|$)/i;

/**
 * Why a 2xx answer with this head cannot be used, or null. An answer without a content type is taken for what was
 * requested.
 */
export function validateAnswerHead(headers: Headers, stream: boolean): string | null {
  const encoding = headers['content-encoding'] ?? 'identity';
  if (encoding !== 'identity') return 'the answer is compressed, which was not requested';
  const type = headers['content-type'];
  if (type === undefined) return null;
  const wanted = stream ? EVENT_STREAM : JSON_TYPE;
  if (wanted.test(String(type))) return null;
  return `the content type of the answer is not ${stream ? 'text/event-stream' : 'JSON'}`;
}
