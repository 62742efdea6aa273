/** Counters since the start or the last reset. Only requests under /v1 count. */
export interface SimulatorStats {
  requestsStarted: number;
  /** Answered to the last byte, errors included. */
  requestsFinished: number;
  /** The client left before the last byte. */
  requestsAborted: number;
  /** Closed by the fault `cut`. */
  requestsCut: number;
  /** Started and not yet ended. A reset does not change it. */
  openNow: number;
  /** Tokens written to a connection, in streams and plain bodies. */
  tokensWritten: number;
  /** Tokens written after the client had left, which shows how late the generation stopped. */
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
