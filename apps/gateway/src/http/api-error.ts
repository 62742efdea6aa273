/** An error whose code is in the table of the surface. Without a message, the answer has the message of the table. */
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
