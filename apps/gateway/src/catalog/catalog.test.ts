import { stampPrice, type ConfigSource, type TollgateConfig } from '@tollgate/runtime';
import { Catalog } from './catalog';

const model = (id: string, more: object = {}) => ({
  id,
  aliases: [],
  kind: 'chat',
  ownedBy: 'us',
  contextTokens: 100,
  maxOutputTokens: 400,
  tokenizer: 'o200k_base',
  price: { input: '0.15', cachedInput: '0.2', output: '0.60', request: '0.01' },
  backends: [{ url: 'simulator:', weight: 1 }],
  ...more,
});
const configOf = (...models: object[]) => ({ models }) as TollgateConfig;

describe('the catalog', () => {
  it('compiles a model: prices as integers, split URLs, and at most the context as output', () => {
    const backends = [
      { url: 'https://host:8443/base/v1/', model: 'inner', apiKey: 'k', weight: 2 },
      { url: 'simulator:', weight: 1 },
    ];
    const config = { current: configOf(model('a', { backends })) } as ConfigSource;
    expect(new Catalog(config, 'http://127.0.0.1:5/v1').find('a', null)).toMatchObject({
      maxOutputTokens: 100,
      price: {
        inputFemtos: '150000000',
        cachedInputFemtos: '200000000',
        outputFemtos: '600000000',
        requestNanos: '10000000',
      },
      // Cached tokens may cost more, and a hold must cover them.
      promptFemtosPerToken: 200_000_000n,
      requestFemtos: 10n ** 13n,
      backends: [
        { origin: 'https://host:8443', basePath: '/base/v1', model: 'inner', authorization: 'Bearer k', weight: 2 },
        { origin: 'http://127.0.0.1:5', basePath: '/v1', model: 'a', authorization: null, weight: 1 },
      ],
    });
  });

  it('recognises OpenAI by its host, unless the configuration names the dialect', () => {
    const backends = [
      { url: 'https://api.openai.com/v1', weight: 1 },
      { url: 'https://us.openai.azure.com/openai/v1', weight: 1 },
      { url: 'https://api.openai.com/v1', dialect: 'vllm', weight: 1 },
      { url: 'https://api.openai.com.example.org/v1', weight: 1 },
    ];
    const config = { current: configOf(model('a', { backends })) } as ConfigSource;
    const found = new Catalog(config, 'http://127.0.0.1:5/v1').find('a', null)!;
    expect(found.backends.map(({ dialect }) => dialect)).toEqual(['openai', 'openai', 'vllm', 'any']);
  });

  it('knows the vocabulary and the dimensions that the configuration names, and no others', () => {
    const found = (more: object) =>
      new Catalog({ current: configOf(model('a', more)) } as ConfigSource, 'http://127.0.0.1:5/v1').find('a', null);
    expect(found({ vocabularyTokens: 7, dimensions: 8 })).toMatchObject({ vocabularyTokens: 7, dimensions: 8 });
    expect(found({})).toMatchObject({ vocabularyTokens: null, dimensions: null });
  });

  it('takes what the dialects of all its backends take', () => {
    const compiled = (...dialects: string[]) => {
      const backends = dialects.map((dialect) => ({ url: 'http://host/v1', dialect, weight: 1 }));
      const entry = model('a', { backends, maxTokensPerVideo: 7, maxTokensPerFile: 8 });
      return new Catalog({ current: configOf(entry) } as ConfigSource, 'http://127.0.0.1:5/v1').find('a', null);
    };
    const strict = { maxStopSequences: 4, dottedNames: false };
    expect(compiled('vllm', 'sglang')).toMatchObject({
      ...{ maxStopSequences: 16, dottedNames: true },
      ...{ maxTokensPerVideo: 7, maxTokensPerFile: null },
    });
    expect(compiled('vllm', 'openai')).toMatchObject({ ...strict, maxTokensPerVideo: null, maxTokensPerFile: null });
    expect(compiled('openai')).toMatchObject({ ...strict, maxTokensPerVideo: null, maxTokensPerFile: 8 });
  });

  it('stamps the same prices with the same version, and different prices with another', () => {
    const price = { input: '1', output: '2', request: '0' };
    expect(stampPrice(price, 'chat')).toEqual(stampPrice({ ...price, cachedInput: '1.0' }, 'chat'));
    expect(stampPrice({ ...price, output: '2.5' }, 'chat').version).not.toBe(stampPrice(price, 'chat').version);
    expect(stampPrice(price, 'embedding').outputFemtos).toBe('0');
  });

  it('follows the configuration, and shows a key only its models', () => {
    const config = { current: configOf(model('a'), model('b')) };
    const catalog = new Catalog(config as ConfigSource, 'http://127.0.0.1:5/v1');
    expect(catalog.list(new Set(['b', 'c'])).map(({ id }) => id)).toEqual(['b']);
    expect([catalog.find('a', new Set(['b'])), catalog.find('c', new Set(['c']))]).toEqual([undefined, undefined]);
    const before = catalog.find('a', null);
    expect(catalog.find('a', null)).toBe(before);
    config.current = configOf(model('c'));
    expect(catalog.list(null).map(({ id }) => id)).toEqual(['c']);
  });

  it('finds a model by its aliases, which follow the configuration too', () => {
    const config = { current: configOf(model('a', { aliases: ['gpt', 'org/b'] })) };
    const catalog = new Catalog(config as ConfigSource, 'http://127.0.0.1:5/v1');
    expect(catalog.list(null).map(({ id }) => id)).toEqual(['a', 'gpt', 'org/b']);
    expect(catalog.find('org/b', new Set(['a']))).toBe(catalog.find('a', null));
    expect(catalog.find('gpt', new Set(['gpt']))).toBeUndefined();
    expect(catalog.row('gpt', null)).toMatchObject({ id: 'gpt' });
    config.current = configOf(model('c', { aliases: ['gpt'] }));
    expect(catalog.find('gpt', null)).toMatchObject({ id: 'c' });
    expect(catalog.find('org/b', null)).toBeUndefined();
  });

  it('allows the whole context as output unless the model names a maximum', () => {
    const config = { current: configOf(model('a', { maxOutputTokens: undefined })) } as ConfigSource;
    expect(new Catalog(config, 'http://127.0.0.1:5/v1').find('a', null)).toMatchObject({ maxOutputTokens: 100 });
  });

  it('keeps the old models in force when new ones cannot be compiled', () => {
    const config = { current: configOf(model('a')) };
    const catalog = new Catalog(config as ConfigSource, 'http://127.0.0.1:5/v1');
    const before = catalog.find('a', null);
    const broken = { backends: [{ url: 'http://127.0.0.1:80000/v1', weight: 1 }] };
    config.current = configOf(model('a'), model('b', broken));
    expect([catalog.find('a', null), catalog.find('b', null)]).toEqual([before, undefined]);
    config.current = configOf(model('b'));
    expect(catalog.list(null).map(({ id }) => id)).toEqual(['b']);
  });
});
