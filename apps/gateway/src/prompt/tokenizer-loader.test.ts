import type { ConfigSource, TollgateConfig } from '@tollgate/runtime';
import { loadTokenizer } from './tokenizer';
import { TokenizerLoader } from './tokenizer-loader';

jest.mock('./tokenizer', () => ({ loadTokenizer: jest.fn() }));

const configOf = (...tokenizers: string[]) =>
  ({ models: tokenizers.map((tokenizer) => ({ tokenizer })) }) as unknown as TollgateConfig;
const loaded = () => jest.mocked(loadTokenizer).mock.calls.map(([tokenizer]) => tokenizer);

describe('the tokenizers of the models', () => {
  it('are loaded at the start and at a change of the configuration, before a request needs them', () => {
    let change: (config: TollgateConfig) => void = () => {};
    const config = {
      current: configOf('o200k_base', 'cl100k_base'),
      onChange: (listener: typeof change) => void (change = listener),
    } as unknown as ConfigSource;
    new TokenizerLoader(config).onModuleInit();
    expect(loaded()).toEqual(['o200k_base', 'cl100k_base']);
    change(configOf('r50k_base'));
    expect(loaded().at(-1)).toBe('r50k_base');
  });
});
