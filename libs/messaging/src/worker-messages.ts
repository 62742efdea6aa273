import {
  RequestError,
  UnavailableError,
  type ReplyOf,
  type RequestOf,
  type Subject,
  type Topic,
  type TopicTypes,
} from '@tollgate/contracts';
import type { Channel } from '@tollgate/runtime';
import { DEFAULT_REQUEST_DEADLINE_MS, Messages, type RequestOptions, type Requests } from './messages';

/** Added to the deadline of a request: its answer, which is late itself then, comes before ours. */
const CHANNEL_GRACE_MS = 500;

/** A request between services, from a worker to the primary process. */
interface Relayed {
  subject: Subject;
  request: unknown;
  deadlineMs: number;
}

type RelayedAnswer = { reply?: unknown } | { refusal: { code: string; message: string } } | { unavailable: string };

/** In the primary process: what the channels to its workers answer to `request`. */
export function answerWorkers(requests: Requests): (data: unknown) => Promise<RelayedAnswer> {
  return async (data) => {
    const { subject, request, deadlineMs } = data as Relayed;
    try {
      return { reply: await requests.request(subject, request as RequestOf<Subject>, { deadlineMs }) };
    } catch (error) {
      if (error instanceof RequestError) return { refusal: { code: error.code, message: error.message } };
      if (error instanceof UnavailableError) return { unavailable: error.message };
      throw error;
    }
  };
}

/**
 * The messages of a worker. It publishes by itself, and its requests are answered by the primary process. That one
 * handles all subjects and consumes all groups, so handlers that are registered here are never called: the modules of a
 * worker are the same as where one process does everything.
 */
export class WorkerMessages extends Messages {
  private state: 'new' | 'started' | 'closed' = 'new';

  /** @param publisher has no handlers; it is started, stopped and closed with this one */
  constructor(
    private readonly publisher: Messages,
    private readonly primary: Pick<Channel, 'ask'>,
  ) {
    super();
  }

  publish<T extends Topic>(topic: T, messages: readonly TopicTypes[T][]): Promise<void> {
    return this.publisher.publish(topic, messages);
  }

  consume(): void {}

  handle(): void {}

  async request<S extends Subject>(
    subject: S,
    request: RequestOf<S>,
    { deadlineMs = DEFAULT_REQUEST_DEADLINE_MS }: RequestOptions = {},
  ): Promise<ReplyOf<S>> {
    if (this.state !== 'started') throw new UnavailableError('messages are not started, or closed');
    const relayed: Relayed = { subject, request, deadlineMs };
    const answer = await this.answered(relayed);
    if ('refusal' in answer) throw new RequestError(answer.refusal.code, answer.refusal.message);
    if ('unavailable' in answer) throw new UnavailableError(answer.unavailable);
    return answer.reply as ReplyOf<S>;
  }

  async start(): Promise<void> {
    await this.publisher.start();
    this.state = 'started';
  }

  stopConsuming(): Promise<void> {
    return this.publisher.stopConsuming();
  }

  async close(): Promise<void> {
    this.state = 'closed';
    await this.publisher.close();
  }

  private async answered(relayed: Relayed): Promise<RelayedAnswer> {
    try {
      return (await this.primary.ask('request', relayed, relayed.deadlineMs + CHANNEL_GRACE_MS)) as RelayedAnswer;
    } catch (error) {
      const late = new UnavailableError(`no answer to "${relayed.subject}" from the primary process`);
      throw Object.assign(late, { cause: error });
    }
  }
}
