import { Injectable } from '@nestjs/common';
import { ClientProxy, type ReadPacket, type WritePacket } from '@nestjs/microservices';
import type { ReplyOf, RequestOf, Subject, Topic } from '@tollgate/contracts';
import { Messages, type RequestOptions } from '../messages';

/** Nest's client over the messages seam: how a service asks another one. */
@Injectable()
export class ServiceClient extends ClientProxy {
  constructor(private readonly messages: Messages) {
    super();
  }

  /**
   * As `Messages.request`, typed by the table of subjects: the reply, a RequestError of the handler, or an
   * UnavailableError at the deadline. `send` is the same as an observable, untyped and with the default deadline.
   */
  request<S extends Subject>(subject: S, request: RequestOf<S>, options?: RequestOptions): Promise<ReplyOf<S>> {
    return this.messages.request(subject, request, options);
  }

  /** Whoever made the messages starts and closes them. */
  async connect(): Promise<void> {}

  async close(): Promise<void> {}

  /** The seam itself. */
  unwrap<T>(): T {
    return this.messages as T;
  }

  protected publish({ pattern, data }: ReadPacket, callback: (packet: WritePacket) => void): () => void {
    this.messages.request(pattern as Subject, data as RequestOf<Subject>).then(
      (response) => callback({ response, isDisposed: true }),
      (err: unknown) => callback({ err }),
    );
    // The seam ends every request by itself, at its deadline at the latest.
    return () => {};
  }

  /** `emit`: the pattern is a topic, the data a batch of its messages. */
  protected async dispatchEvent<T>({ pattern, data }: ReadPacket): Promise<T> {
    return (await this.messages.publish(pattern as Topic, data as never)) as T;
  }
}
