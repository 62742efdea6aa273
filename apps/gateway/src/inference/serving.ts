import type { IncomingMessage } from 'node:http';
import { Injectable } from '@nestjs/common';
import { AdmissionClient } from '@tollgate/admission';
import type { InferenceKind } from '@tollgate/contracts';
import type { Principal } from '../authenticate/authenticate';
import { IdempotencyKeys, MAX_KEY_CHARS } from '../idempotency/idempotency-keys';
import type { KeyedRequest } from '../idempotency/keyed-request';
import type { AdmittedRequest } from './admitted-request';
import type { Served } from './serve/served';
import type { Client } from './client/client';
import { InferenceError } from '../inference-errors';
import type { Body } from './read/intake';
import { PlainServer } from './serve/plain-server';
import { inProgress } from './refusals';
import { StreamServer } from './serve/stream-server';

/** Serves admitted requests from their backends, in one piece or as a stream, and repeated ones from kept answers. */
@Injectable()
export class Serving {
  constructor(
    private readonly streamServer: StreamServer,
    private readonly plainServer: PlainServer,
    private readonly admission: AdmissionClient,
    private readonly idempotencyKeys: IdempotencyKeys,
  ) {}

  /** The request's Idempotency-Key. Null: it has none, or it is ignored. Throws InferenceError for a malformed one. */
  keyOf(request: IncomingMessage, client: Client, principal: Principal): KeyedRequest | null {
    const header = request.headers['idempotency-key'];
    if (header === undefined) return null;
    // Node joins several headers of this name into one value.
    const isOne = request.headersDistinct['idempotency-key']!.length === 1;
    const keyed = isOne ? this.idempotencyKeys.of(String(header), principal) : 'malformed';
    if (keyed === 'malformed')
      throw new InferenceError('invalid_value', {
        message: `Send one Idempotency-Key, of 1 to ${MAX_KEY_CHARS} printable ASCII characters.`,
        param: 'Idempotency-Key',
      });
    if (keyed) client.replayed = false;
    return keyed;
  }

  /**
   * Answers a repeat, and returns the model of its first request. Null: it is the first request, and its answer is
   * recorded. Throws InferenceError, and UnavailableError if the store does not answer.
   */
  async repeat(keyed: KeyedRequest, kind: InferenceKind, body: Body, client: Client): Promise<string | null> {
    const found = await keyed.repetition(kind, body.bytes, body.holdAnswer);
    switch (found.kind) {
      case 'first':
        client.recorder = keyed.record(body.recordAnswer);
        return null;
      case 'running':
        throw inProgress(found.ageMs);
      case 'mismatch':
        throw new InferenceError('idempotency_mismatch');
      case 'not_kept':
        throw new InferenceError('idempotency_answer_not_stored');
      case 'kept':
        client.replay(found.answer);
        return found.answer.model;
    }
  }

  /** All of the answer but its end. Rejects on a bug only. */
  async serve(admitted: AdmittedRequest, client: Client): Promise<Served> {
    try {
      return await (admitted.request.stream ? this.streamServer : this.plainServer).serve(admitted, client);
    } catch (error) {
      // A bug. Without a heartbeat the hold expires and is charged at its recorded progress, as if the process had
      // died.
      this.admission.untrack(admitted.draft.id);
      throw error;
    }
  }
}
