/** Counters since the start or the last reset. Only requests under /v1 count. */
export interface SimulatorStats {
  requestsStarted: number;
  /** Answered to the last byte, errors included. */
  requestsFinished: number;
  /** The client left before. */
  requestsAborted: number;
  /** Closed by the fault `cut`. */
  requestsCut: number;
  /** Started and not yet at any of these ends. A reset leaves it as it is. */
  openNow: number;
  /** Tokens handed to a connection, in streams and plain bodies. */
  tokensWritten: number;
  /** Those among them for which the client was found gone: how late the generation stopped. */
  tokensAfterAbort: number;
}

export function emptyStats(openNow = 0): SimulatorStats {
  return {
    requestsStarted: 0,
    requestsFinished: 0,
    requestsAborted: 0,
    requestsCut: 0,
    openNow,
    tokensWritten: 0,
    tokensAfterAbort: 0,
  };
}
