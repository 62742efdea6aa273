/** A failure, with a message that says what to do. Exit code 1, or 2 if the command line caused it. */
export class Failure extends Error {
  constructor(
    message: string,
    /** The operator API's code, or the command's own, for `--json`. */
    readonly code: string,
    /** The server refused what the command line says. */
    readonly isWrongUsage = false,
  ) {
    super(message);
    this.name = 'Failure';
  }
}

/** The command line is wrong. Exit code 2. */
export class UsageFailure extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'UsageFailure';
  }
}
