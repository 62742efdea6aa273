/** A service's refusal of a request. `code` is part of the subject's contract. `message` may be shown to the caller. */
export class RequestError extends Error {
  constructor(
    readonly code: string,
    message: string,
  ) {
    super(message);
    this.name = 'RequestError';
  }
}

/** There was no answer within the deadline, or nothing that could answer. */
export class UnavailableError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'UnavailableError';
  }
}
