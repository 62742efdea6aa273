import { mintCredential, newId } from '@tollgate/contracts';
import { askedFor, InferenceError } from '../../inference-errors';
import { refusedRequest } from './refused-request';

const owner = { tenantId: newId('ten'), keyId: newId('key') };
const NOW = Date.parse('2026-11-24T10:00:00.000Z');
const id = newId('req');
const early = { id, requestId: id, model: null, admitted: null };
const record = { id, ...owner, at: '2026-11-24T10:00:00.000Z' };

describe('the record of a request without usage', () => {
  it('of one that was refused by its body has the parameter and the model that it names, and never the message', () => {
    const error = new InferenceError('invalid_value', { message: 'about the body', param: 'messages[0].role' });
    const expected = { ...record, code: 'invalid_value', param: 'messages[0].role' };
    expect(refusedRequest(early, owner, error, NOW)).toEqual(expected);
    const asked = askedFor(error, { model: 'sim-lrage', messages: 'secret' });
    expect(refusedRequest(early, owner, asked, NOW)).toEqual({ ...expected, model: 'sim-lrage' });
    // A name of the catalog is the better one: aliases are many.
    expect(refusedRequest({ ...early, model: 'sim-large' }, owner, asked, NOW)).toMatchObject({ model: 'sim-large' });
  });

  it.each(['the words of a prompt', 'x'.repeat(129), 'a\nb', '', 7, null])('has no model %j', (model) => {
    const error = askedFor(new InferenceError('model_not_found', { param: `say ${model}` }), { model });
    expect(refusedRequest(early, owner, error, NOW)).toEqual({ ...record, code: 'model_not_found' });
  });

  it('never has a credential in the place of a model or a parameter', () => {
    for (const kind of ['key', 'token', 'operator'] as const) {
      const { value } = mintCredential(kind);
      const error = askedFor(new InferenceError('unsupported_parameter', { param: value }), { model: value });
      expect(refusedRequest(early, owner, error, NOW)).toEqual({ ...record, code: 'unsupported_parameter' });
    }
  });

  it('has the id of its caller, the model and what refused it', () => {
    const by = { what: 'tokens' as const, scope: 'key' as const, limit: 10 };
    const error = new InferenceError('tokens_limit_exceeded', { by });
    const about = { ...early, requestId: 'order-17', model: 'sim-small' };
    const expected = { ...record, callerRequestId: 'order-17', model: 'sim-small', code: 'tokens_limit_exceeded', by };
    expect(refusedRequest(about, owner, error, NOW)).toEqual(expected);
  });

  it('of one that failed under its hold has the hold and the failed attempts', () => {
    const failed = [{ backend: 'http://gpu/v1', why: 'failed' as const, status: 500 }];
    const admitted = { hold: { holdNanos: 7n }, failed };
    const expected = { ...record, code: 'upstream_error', heldNanos: '7', failed };
    expect(refusedRequest({ ...early, admitted }, owner, new InferenceError('upstream_error'), NOW)).toEqual(expected);
    expect(refusedRequest(early, owner, null, NOW).code).toBe('client_closed');
  });
});
