/** An error of a surface: the status and the public message of its code. */
export interface ErrorEntry {
  status: number;
  message: string;
  /** For `Retry-After`, where waiting helps. */
  retryAfterSeconds?: number;
}

/** The errors of a surface by code. `Entry`: what its envelope says in addition. */
export type ErrorTable<Entry extends ErrorEntry = ErrorEntry> = Readonly<Record<string, Entry>>;

/** An error whose code is in the surface's table; without a message it is answered with the table's. */
export class ApiError extends Error {
  constructor(
    readonly code: string,
    readonly publicMessage?: string,
    readonly headers: Record<string, string> = {},
  ) {
    super(publicMessage ?? code);
    this.name = 'ApiError';
  }
}
