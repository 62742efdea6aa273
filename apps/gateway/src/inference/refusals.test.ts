import fs from 'node:fs';
import type { UpstreamFailure } from '../upstream/exchange/failure';
import type { AdmittedRequest } from './admitted-request';
import { failureAnswer } from './refusals';

const admitted = {
  model: { id: 'm', backends: [] },
  request: { outgoing: { extras: [] } },
  logged: { requestId: 'mine', id: 'req_ours' },
} as unknown as AdmittedRequest;

it.each<[UpstreamFailure, string, number]>([
  [{ kind: 'refused', message: 'no', param: null, code: null }, 'invalid_value', 0],
  // A client can cause these as often as it likes, and they say nothing about the backend.
  [{ kind: 'too_large' }, 'payload_too_large', 0],
  [{ kind: 'stopped' }, 'overloaded_error', 0],
  [{ kind: 'busy', retryAfterSeconds: null }, 'overloaded_error', 1],
  [{ kind: 'timeout' }, 'timeout_error', 1],
  [{ kind: 'failed', reason: 'ECONNRESET' }, 'upstream_error', 1],
])('the failure %j is answered with %s, and is worth %d warnings', (failure, code, warnings) => {
  const lines: string[] = [];
  const spy = jest.spyOn(fs, 'writeSync').mockImplementation((_, text: unknown) => {
    lines.push(String(text));
    return Buffer.byteLength(String(text));
  });
  try {
    expect(failureAnswer(failure, admitted, 'http://gpu/v1').code).toBe(code);
    expect(lines.filter((line) => line.includes('a backend failed'))).toHaveLength(warnings);
  } finally {
    spy.mockRestore();
  }
});
