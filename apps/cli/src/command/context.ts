import { MAX_LIST_ROWS, type OperatorClient } from './operator-client';
import type { Output } from './output';

/** The client and the output of a command. */
export interface Context {
  client: OperatorClient;
  output: Output;
}

export function noteTruncated(output: Output, truncated: boolean): void {
  if (truncated) output.note(`Only the newest ${MAX_LIST_ROWS} are listed.`);
}
