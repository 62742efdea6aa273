/** An error of a surface: the status and public message of a code. */
export interface ErrorEntry {
  status: number;
  message: string;
  /** Value of `Retry-After`, for errors where waiting helps. */
  retryAfterSeconds?: number;
}

/** The errors of a surface by code. `Entry` may have fields that only the envelope of the surface needs. */
export type ErrorTable<Entry extends ErrorEntry = ErrorEntry> = Readonly<Record<string, Entry>>;

/** An error whose code is in the table of the surface. Without a message, the answer has that of the table. */
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
