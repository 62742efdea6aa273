/**
 * A refusal that a service gives to a request; `code` is part of the subject's contract, `message` may be shown to the
 * caller.
 */
export class RequestError extends Error {
  constructor(
    readonly code: string,
    message: string,
  ) {
    super(message);
    this.name = 'RequestError';
  }
}

/** No answer within the deadline, or nobody there to answer. */
export class UnavailableError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'UnavailableError';
  }
}
