import { InferenceError } from '../inference-errors';
import { bodyRules } from './body-rules.fixture';
import { readRequest } from './inference-request';

const CHAT = { model: 'm', messages: [{ role: 'user', content: 'x' }] };
const request = (body: object) => readRequest('chat', Buffer.from(JSON.stringify(body)), () => bodyRules());

describe('top_logprobs', () => {
  it.each([{}, { logprobs: false }, { logprobs: null }])('may be 0 for none, which is not sent on: %j', (more) => {
    const sent = (body: object) => request(body).outgoing.fields.toString();
    expect(sent({ ...CHAT, ...more, top_logprobs: 0 })).toBe(sent({ ...CHAT, ...more }));
    expect(() => request({ ...CHAT, ...more, top_logprobs: 1 })).toThrow(InferenceError);
  });

  it('is sent on with logprobs, also as 0', () => {
    const { fields } = request({ ...CHAT, logprobs: true, top_logprobs: 0 }).outgoing;
    expect(fields.toString()).toContain('"logprobs":true,"top_logprobs":0');
  });
});
