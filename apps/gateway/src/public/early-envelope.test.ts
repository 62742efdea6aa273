import { earlyResponses } from '../openapi/early-answers';
import { INFERENCE_EARLY } from '../openapi/inference-paths';
import { earlyEnvelope } from './early-envelope';

const bodyOf = (status: number, url?: string) => JSON.parse(earlyEnvelope({ status, message: 'x' }, url));

it('a request that arrives too slowly gets the same code as a body that arrives too slowly', () => {
  const error = { message: 'x', type: 'invalid_request_error', param: null, code: 'request_timeout' };
  expect(bodyOf(408)).toEqual({ error });
  expect(bodyOf(408, '/v1/models')).toEqual({ error });
  const documented = earlyResponses(INFERENCE_EARLY)['InferenceRequestTimeout'];
  expect(JSON.stringify(documented)).toContain('"type":"invalid_request_error","param":null,"code":"request_timeout"');
});

it('an early answer of the inference API has its type, and those of the management API have their own envelope', () => {
  expect(bodyOf(503)).toEqual({
    error: { message: 'x', type: 'overloaded_error', param: null, code: 'overloaded_error' },
  });
  for (const status of [400, 417, 431])
    expect(bodyOf(status)).toEqual({
      error: { message: 'x', type: 'invalid_request_error', param: null, code: null },
    });
  expect(bodyOf(408, '/_api/v1/keys')).toEqual({ error: { code: 'invalid_request', message: 'x' } });
  expect(bodyOf(503, '/_api/v1/keys')).toEqual({ error: { code: 'unavailable', message: 'x' } });
});
