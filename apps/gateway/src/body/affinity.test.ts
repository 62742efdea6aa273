import { affinityOf } from './affinity';

const chat = (...messages: [role: string, content: unknown][]) => ({
  messages: messages.map(([role, content]) => ({ role, content })),
});
const prefix = (body: object) => affinityOf('chat', body as Record<string, unknown>, 'prefix');

describe('the affinity of a request', () => {
  it('is the same for all turns of a conversation, and differs between conversations', () => {
    const first = chat(['system', 'Be brief.'], ['user', 'Hello']);
    const second = chat(['system', 'Be brief.'], ['user', 'Hello'], ['assistant', 'Hi'], ['user', 'And now?']);
    expect(prefix(first)).toEqual(expect.any(Number));
    expect(prefix(second)).toBe(prefix(first));
    expect(prefix(chat(['system', 'Be brief.'], ['user', 'Good day']))).not.toBe(prefix(first));
    expect(prefix(chat(['system', 'Be brief.Hello'], ['user', '']))).not.toBe(prefix(first));
  });

  it('is the same for questions about one long document', () => {
    const about = (question: string) => chat(['system', 'word '.repeat(2_000)], ['user', question]);
    expect(prefix(about('Who?'))).toBe(prefix(about('When?')));
  });

  it('reads the texts of content parts, prompts and tokens', () => {
    const parts = [{ type: 'image_url' }, { type: 'text', text: 'Hello' }];
    expect(prefix(chat(['user', parts]))).toBe(prefix(chat(['user', 'Hello'])));
    const of = (prompt: unknown) => affinityOf('completion', { prompt }, 'prefix');
    expect(of(['Once upon', 'b'])).toBe(of('Once upon'));
    expect(of([[1, 2], [3]])).toBe(of([1, 2]));
    expect(of([1, 3])).not.toBe(of([1, 2]));
  });

  it('is that of the user where the model says so, and none without a user, for embeddings and by load', () => {
    const body = { ...chat(['user', 'Hello']), user: 'anna' };
    expect(affinityOf('chat', body, 'user')).toBe(affinityOf('chat', { ...chat(['user', 'x']), user: 'anna' }, 'user'));
    expect(affinityOf('chat', chat(['user', 'Hello']), 'user')).toBeNull();
    expect(affinityOf('chat', body, 'load')).toBeNull();
    expect(affinityOf('embedding', { input: 'Hello' }, 'prefix')).toBeNull();
    expect(affinityOf('completion', { prompt: '' }, 'prefix')).toBeNull();
  });
});
