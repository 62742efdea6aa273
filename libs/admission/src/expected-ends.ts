/** When the first running request of a key is expected to end. */
export interface ExpectedEnd {
  keyId: string;
  /**
   * Milliseconds from now: the mean length of its model, less its age. Of an overdue request, as much as it is overdue.
   */
  endsInMs: number;
}
