import { ChunkTranslator } from '../wire/chunk-translator';
import type { Exchange } from '../exchange/exchange';
import type { UpstreamFailure } from '../exchange/failure';
import { StreamRelay } from './stream-relay';
import type { Allowance, StreamEnd } from './stream-sides';

export const event = (data: object) => `data: ${JSON.stringify(data)}\n\n`;
export const choiceOf = (content: string, finish: string | null) => ({
  index: 0,
  delta: { content },
  finish_reason: finish,
});

export function chunk(content: string, finish: string | null = null): string {
  const choices = [choiceOf(content, finish)];
  return event({ id: 'x', object: 'chat.completion.chunk', created: 1, model: 'm', choices });
}

/** A relay whose client, backend and allowance are played by the test. One character of text is one token. */
export class Stage {
  out = '';
  heads = 0;
  room = Infinity;
  paused = false;
  aborted = false;
  works = false;
  rejected: UpstreamFailure | null = null;
  answers: ReturnType<Allowance['take']>[] = [];
  end: StreamEnd | null = null;
  drain = () => {};
  readonly allowance: Allowance & { limit: number } = {
    take: () => this.answers.shift() ?? 'granted',
    limit: 2,
    onReady: () => {},
  };
  readonly deadline = { passed: false };
  readonly relay: StreamRelay;

  constructor(includeUsage = false) {
    const translator = new ChunkTranslator(
      {
        id: 'ours',
        object: 'chat.completion.chunk',
        createdSeconds: 7,
        model: 'public',
        includeUsage,
      },
      1,
    );
    const client = {
      begin: () => void (this.heads += 1),
      write: (latin1: string) => {
        this.out += latin1;
        return (this.room -= latin1.length) > 0;
      },
      onDrain: (listener: () => void) => (this.drain = listener),
    };
    this.relay = new StreamRelay(translator, client, this.allowance, this.deadline, {
      choices: 1,
      countText: (text) => text.length,
      endOfChoice: (index) => ({ index, delta: {}, finish_reason: 'length' }),
    });
    const exchange = {
      start: () => {},
      abort: () => (this.aborted = true),
      delivering: () => (this.works = true),
      reject: (failure: UpstreamFailure) => {
        this.rejected = failure;
        if (!this.relay.mayRestart()) return false;
        this.relay.restart();
        return true;
      },
      pause: () => {},
      resume: () => (this.paused = false),
    };
    void this.relay.run(exchange as unknown as Exchange).then((end) => (this.end = end));
  }

  feed(bytes: string): void {
    if (!this.relay.onData(Buffer.from(bytes))) this.paused = true;
  }

  /** The text that the client has received. */
  get text(): string {
    return this.out
      .split('\n\n')
      .filter((frame) => frame.startsWith('data: {'))
      .map((frame) => JSON.parse(frame.slice(6)).choices[0].delta.content ?? '')
      .join('');
  }
}

export const turn = () => new Promise(setImmediate);
