/** When the first running request of a key is expected to end. */
export interface ExpectedEnd {
  keyId: string;
  /**
   * Milliseconds from now: the mean length of the model minus the request's age. For an overdue request: the time by
   * which it is overdue.
   */
  endsInMs: number;
}
