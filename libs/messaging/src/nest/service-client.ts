import { Injectable } from '@nestjs/common';
import { ClientProxy, type ReadPacket, type WritePacket } from '@nestjs/microservices';
import type { ReplyOf, RequestOf, Subject, Topic } from '@tollgate/contracts';
import { Messages, type RequestOptions } from '../messages';

/** Nest's client over the messages seam, for requests to other services. */
@Injectable()
export class ServiceClient extends ClientProxy {
  constructor(private readonly messages: Messages) {
    super();
  }

  /**
   * Like `Messages.request`, typed by the table of subjects: the reply, a RequestError of the handler, or an
   * UnavailableError at the deadline. `send` is the same as an observable, untyped and with the default deadline.
   */
  request<S extends Subject>(subject: S, request: RequestOf<S>, options?: RequestOptions): Promise<ReplyOf<S>> {
    return this.messages.request(subject, request, options);
  }

  /** The program that created the messages starts and closes them. */
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
    // The seam ends every request, at its deadline at the latest.
    return () => {};
  }

  /** `emit`: the pattern is a topic, the data a batch of messages. */
  protected async dispatchEvent<T>({ pattern, data }: ReadPacket): Promise<T> {
    return (await this.messages.publish(pattern as Topic, data as never)) as T;
  }
}
