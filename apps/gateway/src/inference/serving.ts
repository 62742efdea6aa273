import { Injectable } from '@nestjs/common';
import { AdmissionClient } from '@tollgate/admission';
import { TokenizerThrottle } from '../prompt/tokenizer-throttle';
import { StreamWatch } from '../upstream/stream-watch';
import { Upstream } from '../upstream/upstream';
import type { AdmittedRequest, Served } from './admitted-request';
import type { Client } from './client';
import { servePlain } from './serve-plain';
import { serveStream } from './serve-stream';

/** Serves admitted requests from their backends, in one piece or as a stream. */
@Injectable()
export class Serving {
  constructor(
    readonly admission: AdmissionClient,
    readonly upstream: Upstream,
    readonly streams: StreamWatch,
    readonly counting: TokenizerThrottle,
  ) {}

  /** All of the answer but its end. Rejects on a bug only. */
  async serve(admitted: AdmittedRequest, client: Client): Promise<Served> {
    try {
      return await (admitted.request.stream ? serveStream : servePlain)(this, admitted, client);
    } catch (error) {
      // A bug. Without a heartbeat the hold expires and is charged at its recorded progress, as if the process had
      // died.
      this.admission.untrack(admitted.draft.id);
      throw error;
    }
  }
}
