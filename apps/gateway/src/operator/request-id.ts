import { isId } from '@tollgate/contracts';

const ANSWER_ID = /^(chatcmpl|cmpl)-/;

/** Our id of a request. Customers know it by the id of its answer. Null for any other name. */
export function requestIdOf(name: string): string | null {
  const id = name.replace(ANSWER_ID, 'req_');
  return isId('req', id) ? id : null;
}
