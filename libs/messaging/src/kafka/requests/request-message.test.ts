import type { IHeaders, KafkaMessage } from 'kafkajs';
import type { OutgoingMessage } from '../publish/topic-publisher';
import { readReply, readRequest, writeReply, writeRequest } from './request-message';

const REQUEST = {
  ...{ id: 'msg_1', replyPartition: 3, deadlineMs: 17, partition: 1, askedMs: 7 },
  ...{ subject: 'auth.tenants.get', request: { tenantId: 'ten_1' } },
};
/** The message as delivered, with another payload. */
const delivered = (message: OutgoingMessage, payload: unknown) =>
  ({ ...message, headers: message.headers as IHeaders, value: Buffer.from(JSON.stringify(payload)) }) as KafkaMessage;
/** As text, this object would throw. */
const NO_TEXT = { toString: 1, valueOf: 1 };

test.each([null, 7, ['auth.tenants.get'], {}, NO_TEXT])(
  'a request whose subject is %j has none, and can still be answered',
  (subject) => {
    const read = readRequest(delivered(writeRequest(REQUEST), { subject, request: REQUEST.request }));
    expect(read).toEqual({ ...REQUEST, subject: '' });
  },
);

test('a refusal whose text is no text has none', () => {
  const refused = (message: unknown) =>
    readReply(delivered(writeReply(REQUEST, { unavailable: true }), { refusal: { code: 'not_found', message } }));
  expect(refused('No such tenant.').outcome).toEqual({ refusal: { code: 'not_found', message: 'No such tenant.' } });
  for (const message of [undefined, 7, NO_TEXT])
    expect(refused(message)).toMatchObject({
      outcome: { refusal: { code: 'not_found', message: '' } },
      readable: true,
    });
});
