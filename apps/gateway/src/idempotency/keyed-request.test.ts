import type { AdmissionClient } from '@tollgate/admission';
import { AnswerVault } from './answer-vault';
import { KeyedRequest } from './keyed-request';

it('a kept answer counts first with what the store keeps of it, then with all of its bytes', async () => {
  const vault = new AnswerVault(['a-secret-of-at-least-32-characters']);
  const body = Buffer.from('{}');
  const fingerprint = await vault.fingerprint('chat', body);
  let sealed = '';
  const admission = {
    recall: () => Promise.resolve({ kind: 'settled', fingerprint, answerChars: sealed.length }),
    answer: () => Promise.resolve(sealed),
  } as unknown as AdmissionClient;
  const keyed = new KeyedRequest({ admission, vault, maxAnswerBytes: 1_000_000 }, 'tenant', 'claim');
  keyed.record(() => true);
  // Much smaller when it is compressed.
  const end = Buffer.alloc(900_000, 'x');
  sealed = (await keyed.keep({ model: 'm', isStream: false, requestId: null, end })).sealed!;
  await keyed.recall();
  const reserved: number[] = [];
  const found = await keyed.repetition('chat', body, (bytes) => reserved.push(bytes));
  expect(found).toMatchObject({ kind: 'kept', answer: { body: end } });
  expect(reserved[0]).toBe(sealed.length);
  expect(reserved.at(-1)).toBeGreaterThanOrEqual(end.length);
});
