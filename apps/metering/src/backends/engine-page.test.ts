import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { readEngine, readPage } from './engine-page';

const lines = (...text: string[]) => `${text.join('\n')}\n`;

describe('the counters of an engine', () => {
  it.each([
    [
      'vLLM, of several engine cores',
      lines(
        '# HELP vllm:prompt_tokens_total Number of prefill tokens processed.',
        '# TYPE vllm:prompt_tokens_total counter',
        'vllm:prompt_tokens_total{engine="0",model_name="Qwen/Qwen3-8B"} 6.0e+03',
        'vllm:prompt_tokens_total{engine="1",model_name="Qwen/Qwen3-8B"} 1000.0',
        'vllm:prompt_tokens_created{engine="0",model_name="Qwen/Qwen3-8B"} 1.7e+09',
        'vllm:generation_tokens_total{engine="0",model_name="odd \\"}{ name"} 42 1700000000000',
        'process_start_time_seconds 1.70000000025e+09',
      ),
      { promptTokens: 7_000, generationTokens: 42, startedMs: 1_700_000_000_250, countsCached: true },
    ],
    [
      'SGLang',
      'sglang:prompt_tokens_total{model_name="m"} 8.128902e+06\r\nsglang:generation_tokens_total{model_name="m"} ' +
        '7.557572e+06\r\n',
      { promptTokens: 8_128_902, generationTokens: 7_557_572, startedMs: null, countsCached: true },
    ],
    [
      'llama.cpp, which has no labels and does not count cached tokens',
      'llamacpp:prompt_tokens_total 6886\nllamacpp:tokens_predicted_total 3469',
      { promptTokens: 6_886, generationTokens: 3_469, startedMs: null, countsCached: false },
    ],
    [
      'TGI',
      'tgi_request_input_length_sum 12\ntgi_request_input_length_count 2\ntgi_request_generated_tokens_sum 34\n',
      { promptTokens: 12, generationTokens: 34, startedMs: null, countsCached: true },
    ],
    [
      'an engine without any request so far',
      lines('# TYPE simulator_prompt_tokens_total counter', '# TYPE simulator_generation_tokens_total counter'),
      { promptTokens: 0, generationTokens: 0, startedMs: null, countsCached: true },
    ],
  ])('reads a page of %s', (_, text, reading) => expect(readPage(text)).toEqual(reading));

  it.each([
    ['nothing', ''],
    ['a page of HTML', '<html>vllm:prompt_tokens_total 1</html>'],
    ['only one of the two counters', 'vllm:prompt_tokens_total 1\n'],
    ['a counter that is not a number', 'vllm:prompt_tokens_total x\nvllm:generation_tokens_total 1\n'],
    ['a negative counter', 'vllm:prompt_tokens_total -1\nvllm:generation_tokens_total 1\n'],
    ['a counter that is too large', 'vllm:prompt_tokens_total 1e300\nvllm:generation_tokens_total 1\n'],
    ['labels without an end', 'vllm:prompt_tokens_total{a="b 1\nvllm:generation_tokens_total 1\n'],
  ])('refuses %s', (_, text) => expect(() => readPage(text)).toThrow());
});

describe('the request for a metrics page', () => {
  const answers: Record<string, (response: import('node:http').ServerResponse) => void> = {
    '/hangs': () => {},
    '/moved': (response) => response.writeHead(302, { location: '/ok' }).end(),
    '/broken': (response) => response.writeHead(500).end('vllm:prompt_tokens_total 1'),
    '/endless': (response) => {
      const more = () =>
        void (response.write('# x\n'.repeat(64 * 1024)) ? setImmediate(more) : response.once('drain', more));
      more();
    },
    '/ok': (response) => response.end('llamacpp:prompt_tokens_total 1\nllamacpp:tokens_predicted_total 2\n'),
  };
  const server = createServer(({ url }, response) => answers[url!]!(response));
  let origin: string;
  beforeAll(async () => {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterAll(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });

  it.each([
    ['/hangs', /timeout/],
    ['/moved', /fetch failed|redirect/],
    ['/broken', /status 500/],
    ['/endless', /longer than/],
  ])('gives up within its time, at a page that is no use (%s)', async (path, reason) => {
    await expect(readEngine(origin + path, { timeoutMs: path === '/hangs' ? 50 : 60_000 })).rejects.toThrow(reason);
  });

  it('returns the counters', async () =>
    expect(await readEngine(`${origin}/ok`)).toMatchObject({ generationTokens: 2 }));
});
