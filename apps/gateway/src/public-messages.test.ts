import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ACCOUNT_ERRORS } from './http/account/errors';
import { type InferenceErrorCode, INFERENCE_ERRORS } from './inference-errors';

const ADVICE = /\b(Retry|Try|Send|Shorten|Check|Top up|Raise|Contact|Use|See|lists) /;

it.each([
  ...(['payload_too_large', 'request_timeout', 'api_error'] as const).map((code) => [code, INFERENCE_ERRORS[code]]),
  ...(['payload_too_large', 'internal_error'] as const).map((code) => [code, ACCOUNT_ERRORS[code]]),
] as [string, { message: string }][])('the message of %s says what the caller can do', (_, { message }) => {
  expect(message).toMatch(ADVICE);
});

describe("HAProxy's own errors", () => {
  const cfg = readFileSync(join(__dirname, '../../../deploy/haproxy/haproxy.cfg'), 'utf8');
  const messages = new Map(
    [...cfg.matchAll(/^ *http-error status (\d+) .*"message":"([^"]+)"/gm)].map(([, status, text]) => [+status!, text]),
  );

  it.each([
    [500, 'api_error'],
    [503, 'overloaded_error'],
  ] satisfies [number, InferenceErrorCode][])('of %i says the same as %s of the gateway', (status, code) => {
    expect(messages.get(status)).toBe(INFERENCE_ERRORS[code].message);
  });

  it.each([408, 502, 504])('of %i says what the caller can do', (status) => {
    expect(messages.get(status)).toMatch(ADVICE);
  });
});
