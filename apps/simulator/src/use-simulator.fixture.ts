import OpenAI from 'openai';
import { startSimulator, type Simulator, type SimulatorOptions } from './index';

/** Starts a simulator for the calling test file, with fresh counters for each test, and an official client of it. */
export function useSimulator(options: SimulatorOptions = {}) {
  let simulator: Simulator;
  let client: OpenAI;
  beforeAll(async () => {
    simulator = await startSimulator(options);
    client = new OpenAI({ baseURL: simulator.url, apiKey: options.apiKey ?? 'any', maxRetries: 0 });
  });
  beforeEach(() => simulator.reset());
  afterAll(() => simulator.close());
  return {
    get simulator() {
      return simulator;
    },
    get openai() {
      return client;
    },
    post: (path: string, body: object, init: RequestInit = {}): Promise<Response> =>
      fetch(simulator.url + path, {
        method: 'POST',
        body: JSON.stringify(body),
        headers: { 'content-type': 'application/json' },
        ...init,
      }),
  };
}

/** Reads a stream to its end, or until it breaks. */
export async function readEvents(response: Response): Promise<{ events: string[]; error: Error | null }> {
  let text = '';
  let error: Error | null = null;
  const decoder = new TextDecoder();
  try {
    for await (const chunk of response.body!) text += decoder.decode(chunk as Uint8Array, { stream: true });
  } catch (cause) {
    error = cause as Error;
  }
  const events = text.split('\n\n').filter((event) => event !== '');
  return { events: events.map((event) => event.replace(/^data: /, '')), error };
}
