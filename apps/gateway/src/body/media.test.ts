import { upstreamBody } from './outgoing';
import { backend, CHAT, refused, request, RULES } from './sent-bodies.fixture';

describe('media that a backend would fetch', () => {
  const image = (url: string) => ({
    ...CHAT,
    messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }],
  });
  const fetching = (mediaUrls: boolean | string[]) => ({ ...RULES, mediaUrls });
  const outcome = (url: string, mediaUrls: boolean | string[]) => {
    const why = refused(image(url), fetching(mediaUrls));
    if (why) return why[2];
    const out = JSON.parse(upstreamBody(request(image(url), fetching(mediaUrls)), backend(), 9).toString());
    return out.messages[0].content[0].image_url.url;
  };

  it('is accepted inline, and by https if the model allows the domain', () => {
    expect(outcome('data:image/png;base64,AAAA', false)).toBe('data:image/png;base64,AAAA');
    expect(outcome('https://Img.Example.COM/a b.png?x#y', ['example.com'])).toBe('https://img.example.com/a%20b.png?x');
    expect(outcome('https://example.com', ['example.com'])).toBe('https://example.com/');
    expect(outcome('https://cdn.other.org/x', true)).toBe('https://cdn.other.org/x');
  });

  it.each([
    'http://169.254.169.254/latest/meta-data',
    'file:///etc/passwd',
    'https://169.254.169.254/',
    'https://0xa9fea9fe/',
    'https://2852039166/',
    'https://[::1]/',
    'https://localhost/',
    'https://metadata/',
    'https://metadata.google.internal/',
    'https://printer.local/',
    'https://tollgate.default/',
    'https://api.namespace.svc/',
    'https://wiki.corp/',
    'https://example.com:8443/',
    'https://user@example.com/',
    'https://example.com.evil.org\u0000/',
    'ftp://example.com/',
    ' https://169.254.169.254 ',
    '',
  ])('is refused from any other URL, with a remedy: %s', (url) => {
    for (const allowed of [true, ['example.com']])
      expect(outcome(url, allowed)).toContain('Send the content itself as a "data:" URL.');
  });

  it('is refused as audio', () => {
    const sound = (data: string) => ({
      ...CHAT,
      messages: [{ role: 'user', content: [{ type: 'input_audio', input_audio: { data, format: 'wav' } }] }],
    });
    expect([refused(sound('UklGRg==')), refused(sound('data:audio/wav;base64,UklGRg=='))]).toEqual([null, null]);
    for (const data of ['http://169.254.169.254/latest', 'file:///etc/passwd', 'data:audio/wav,x', '//host/x y'])
      expect(refused(sound(data))!.slice(0, 2)).toEqual(['invalid_value', 'messages[0].content[0].input_audio.data']);
  });

  it('is refused as a schema of another document, in every field with a schema', () => {
    const remote = { type: 'object', properties: { a: [{ $ref: 'http://169.254.169.254/schema.json' }] } };
    const local = { $schema: 'http://json-schema.org/draft-07/schema#', $ref: '#/$defs/a', $defs: { a: {} } };
    const fields = (schema: object) => [
      { tools: [{ type: 'function', function: { name: 'f', parameters: schema } }] },
      { functions: [{ name: 'f', parameters: schema }] },
      { response_format: { type: 'json_schema', json_schema: { name: 'f', schema } } },
      { response_format: { type: 'json_object', schema } },
      { guided_json: schema },
    ];
    const rules = { ...RULES, passthrough: new Set(['guided_json']) };
    for (const more of fields(remote))
      expect(refused({ ...CHAT, ...more }, rules)!.slice(0, 2)).toEqual([
        'unsupported_parameter',
        Object.keys(more)[0],
      ]);
    for (const more of fields(local)) expect(refused({ ...CHAT, ...more }, rules)).toBeNull();
    expect(refused({ ...CHAT, guided_json: { $schema: 'http://10.0.0.1/x' } }, rules)).not.toBeNull();
  });

  it('is refused from any other domain', () => {
    expect(outcome('https://notexample.com/x', ['example.com'])).toContain('is not on a domain');
    expect(outcome('https://example.com/x', false)).toContain("the model 'public' may not fetch URLs");
  });
});
