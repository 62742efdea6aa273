import type { BackendDialect } from '@tollgate/contracts';
import type { InferenceError } from '../inference-errors';
import { bodyRules } from './body-rules.fixture';
import { readRequest } from './inference-request';
import { upstreamBody } from './outgoing';

export const CHAT = { model: 'public', messages: [{ role: 'user', content: 'x' }] };
export const RULES = bodyRules({
  id: 'public',
  passthrough: new Set(['top_k', 'chat_template_kwargs', 'grammar', 'metadata']),
});
export const request = (body: object | string, rules = RULES) =>
  readRequest('chat', Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)), () => rules);
export const backend = (dialect: BackendDialect = 'any', passthrough = RULES.passthrough) => ({
  model: 'inner',
  dialect,
  passthrough,
});
export const written = (body: object | string, to = backend()) => upstreamBody(request(body), to, 9).toString();
export const sent = (body: object | string, to = backend()) => JSON.parse(written(body, to));
export const refused = (body: object | string, rules = RULES) => {
  try {
    request(body, rules);
  } catch (error) {
    const { code, param, message } = error as InferenceError;
    return [code, param, message];
  }
  return null;
};
