import { DEFAULT_PASSTHROUGH } from '@tollgate/contracts';
import { InferenceError } from '../inference-errors';
import { bodyRules } from './body-rules.fixture';
import { readRequest } from './inference-request';

const RULES = bodyRules({ passthrough: new Set(DEFAULT_PASSTHROUGH.any) });
const request = (more: object) => {
  const body = { model: 'm', messages: [{ role: 'user', content: 'x' }], ...more };
  return readRequest('chat', Buffer.from(JSON.stringify(body)), () => RULES);
};
const refused = (more: object) => {
  try {
    request(more);
  } catch (error) {
    const { code, param, message } = error as InferenceError;
    return [code, param, message];
  }
  return null;
};

describe('an unknown field', () => {
  it('is refused without being normalised if its name is long, also as an argument of a template', () => {
    const normalize = jest.spyOn(String.prototype, 'normalize');
    const marks = 'a' + '\u0301'.repeat(50) + '\u0316'.repeat(50);
    for (const name of [marks, `m${'_'.repeat(100)}odel`, 'x'.repeat(101)]) {
      const shown = name.slice(0, 100);
      const message = `'${shown}…' is not supported: it is longer than 100 characters.`;
      expect(refused({ [name]: 1 })).toEqual(['unsupported_parameter', shown, message]);
      const at = `chat_template_kwargs.${shown}`;
      expect(refused({ chat_template_kwargs: { [name]: true } })).toEqual([
        'unsupported_parameter',
        at,
        `'${at}' is not supported.`,
      ]);
    }
    expect(normalize).not.toHaveBeenCalled();
    normalize.mockRestore();
  });
});

describe('an argument of a template', () => {
  it.each(['enable_thinking', 'thinking'])('may be the switch %s, which counts as text of the prompt', (name) => {
    for (const value of [true, false]) {
      const kwargs = { [name]: value };
      expect(request({ chat_template_kwargs: kwargs }).outgoing.extras).toEqual([
        { name: 'chat_template_kwargs', json: JSON.stringify(kwargs), rendered: true },
      ]);
    }
  });

  it.each([
    [{ chat_template_kwargs: { thinking: { budget: 9 } } }, 'chat_template_kwargs.thinking', 'must be true or false'],
    [{ chat_template_kwargs: { thinking: 'x' } }, 'chat_template_kwargs.thinking', 'must be true or false'],
    [{ chat_template_kwargs: { Thinking: true } }, 'chat_template_kwargs.Thinking', 'is not supported'],
    [{ thinking: true }, 'thinking', 'it changes how much is generated'],
  ])('is refused in any other form of the switch: %j', (more, param, words) => {
    expect(refused(more)).toEqual([expect.any(String), param, expect.stringContaining(words)]);
  });
});
