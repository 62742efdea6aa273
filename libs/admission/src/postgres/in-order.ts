import type { Row } from './connections';

/** The results by item. The first value of a row is the item's number, from 1; `read` gets the others. */
export function inOrder<R>(rows: readonly Row[], read: (values: Row, index: number) => R): R[] {
  const answers: R[] = [];
  for (const [number, ...values] of rows) answers[Number(number) - 1] = read(values, Number(number) - 1);
  return answers;
}
