import { readPlainResponse, writePlainResponse } from './plain-response';

describe('a plain answer', () => {
  it('has our identity and the backend’s content unchanged, even long numbers', () => {
    const choices = '"choices":[{"index":0,"message":{"content":"é"},"p":-0.00001234567890123456789}]';
    const source = `{"id":"theirs","model":"inner","choices":[],"system_fingerprint":"fp",${choices},"x":1}`;
    const response = readPlainResponse('chat', Buffer.from(source))!;
    const out = writePlainResponse(
      'chat',
      response,
      { id: 'ours', object: 'chat.completion', createdSeconds: 7, model: 'public' },
      { total_tokens: 1 },
    );
    expect(out.toString()).toBe(
      `{"id":"ours","object":"chat.completion","created":7,"model":"public",${choices},"usage":{"total_tokens":1}}`,
    );
  });

  it.each(['', '[]', 'null', '{}', '{"choices":[]}', '{"choices":[1]}', '{"choices":{}}', '<html>'])(
    'is rejected: %s',
    (text) => {
      expect(readPlainResponse('chat', Buffer.from(text))).toBeNull();
    },
  );
});
