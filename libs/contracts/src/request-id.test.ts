import { mintCredential } from './credentials';
import { isId } from './ids';
import { requestIdFrom } from './request-id';

it('the id that a caller chose is taken over if its form is allowed', () => {
  for (const id of ['mine-1', 'A_b', 'x'.repeat(64), 'task-17', 'sk-1']) expect(requestIdFrom(id)).toBe(id);
  for (const id of [undefined, '', 'a b', 'x'.repeat(65), ['a']]) expect(isId('req', requestIdFrom(id))).toBe(true);
});

it('a credential in the place of an id is not taken over, so no log, answer or event shows it', () => {
  for (const kind of ['key', 'token', 'operator'] as const) {
    const { value } = mintCredential(kind);
    for (const id of [value, value.slice(0, -10), `x-${value}`, value.toUpperCase()])
      expect(isId('req', requestIdFrom(id))).toBe(true);
  }
});
