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
