/**
 * A service's refusal of a request. `code` is part of the subject's contract. A surface shows `message` to its caller,
 * which is for what only the service knows, such as a value. Without one, it shows the text of its own table.
 */
export class RequestError extends Error {
  constructor(
    readonly code: string,
    message: string = code,
  ) {
    super(message);
    this.name = 'RequestError';
  }

  /** Undefined for a refusal that says no more than its code. */
  get publicMessage(): string | undefined {
    return this.message === this.code ? undefined : this.message;
  }
}

/** The answer, or null if the service refuses with `not_found`. */
export async function ifFound<T>(answer: Promise<T>): Promise<T | null> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof RequestError && error.code === 'not_found') return null;
    throw error;
  }
}

/** There was no answer within the deadline, or nothing that could answer. */
export class UnavailableError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'UnavailableError';
  }
}

/** A change may not be in force yet. A surface shows `publicMessage` to its caller. */
export class NotInForceError extends UnavailableError {
  constructor(
    message: string,
    readonly publicMessage: string,
  ) {
    super(message);
  }
}

/**
 * Waits for a change that must be in force before the answer. When that cannot be confirmed, the answer is 503
 * `unavailable`: the change may be committed nevertheless. `message` tells the caller what may still be the case and
 * what to do. A repeat must be harmless.
 */
export async function inForce<T>(change: Promise<T>, message: string): Promise<T> {
  try {
    return await change;
  } catch (error) {
    if (!(error instanceof UnavailableError)) throw error;
    throw new NotInForceError(error.message, message);
  }
}
