import {
  Alert,
  Anchor,
  Button,
  Code,
  Group,
  Modal,
  NumberInput,
  Select,
  Stack,
  Table,
  Text,
  TextInput,
} from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState, type FormEvent, type KeyboardEvent, type MouseEvent } from 'react';
import type { Booked, CreditPreview, TenantRow } from '../../../src/api/answers';
import { api, pathOf } from '../backend/api';
import { Failure } from '../parts/failure';
import { Money } from '../parts/format';
import { usePerson } from '../backend/me';
import { isBookedWithOtherValues, isUnanswered, sendBooking, unansweredOf } from './operator-bookings';

const CENTS = 100;

const newRef = () => `console-${crypto.randomUUID()}`;

/** Every booking is shown as the entry that it makes before it is booked. */
export function BookCredit(props: { tenant: TenantRow; onClose: () => void; onBooked: () => Promise<void> }) {
  const { tenant, onClose, onBooked } = props;
  const { currency } = usePerson();
  const path = `${pathOf('operator', 'tenants', tenant.id)}/credit`;
  const [unanswered, setUnanswered] = useState(() => unansweredOf(tenant.id, sessionStorage));
  const [kind, setKind] = useState(unanswered?.kind ?? 'topup');
  const [amount, setAmount] = useState<string | number>(unanswered ? unanswered.amountCents / CENTS : '');
  const [reason, setReason] = useState(unanswered?.reason ?? '');
  // One reference until an answer arrives, also in the next form: a repeat after a lost answer is entered once.
  const [ref, setRef] = useState(() => unanswered?.ref ?? newRef());
  const booking = { kind, amountCents: Math.round(Number(amount) * CENTS), reason, ref };
  const preview = useMutation({ mutationFn: () => api.post<CreditPreview>(`${path}/preview`, booking) });
  const book = useMutation({
    mutationFn: () =>
      sendBooking({ tenantId: tenant.id, booking, kept: sessionStorage }, (sent) => api.post<Booked>(path, sent)),
    onError: (error) => {
      if (!isBookedWithOtherValues(error)) return;
      setRef(newRef());
      preview.reset();
    },
    // Without an answer, too: the balance may have changed.
    onSettled: () => {
      setUnanswered(unansweredOf(tenant.id, sessionStorage));
      return onBooked();
    },
  });
  // It was previewed before it was sent. A preview now would add it to a balance that may contain it.
  const isRepeat = unanswered !== null && JSON.stringify(unanswered) === JSON.stringify(booking);
  const mayBook = isRepeat || preview.data !== undefined;
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (mayBook) book.mutate();
    else preview.mutate();
  };
  const edit =
    <T,>(set: (value: T) => void) =>
    (value: T) => {
      set(value);
      preview.reset();
      book.reset();
    };
  return (
    <Modal opened onClose={onClose} title={`Credit of ${tenant.name}`}>
      {book.data ? (
        <Stack>
          <Text>
            {book.data.created
              ? 'Booked. The balance is'
              : 'It was booked before, and is booked once. The balance after it was'}{' '}
            <Money cents={book.data.balanceCents} currency={currency} />.
          </Text>
          <Button onClick={onClose}>Done</Button>
        </Stack>
      ) : (
        <form onSubmit={submit} onKeyDown={ignoreHeldEnter}>
          <Stack>
            {unanswered === null || book.isPending ? null : <Unanswered tenantId={tenant.id} error={book.error} />}
            <Select
              label="Kind"
              allowDeselect={false}
              data={[
                { value: 'topup', label: 'top-up' },
                { value: 'refund', label: 'refund' },
                { value: 'adjustment', label: 'adjustment (signed)' },
              ]}
              value={kind}
              onChange={(value) => edit(setKind)(value ?? 'topup')}
            />
            <NumberInput
              label={`Amount (${currency})`}
              required
              decimalScale={2}
              allowNegative={kind === 'adjustment'}
              value={amount}
              onChange={edit(setAmount)}
            />
            <TextInput
              label="Reason"
              required
              maxLength={200}
              value={reason}
              onChange={({ currentTarget }) => edit(setReason)(currentTarget.value)}
            />
            {preview.data && !isRepeat ? <Previewed of={preview.data} currency={currency} /> : null}
            <Group justify="flex-end">
              <Button type="submit" loading={preview.isPending || book.isPending} onClick={ignoreDoubleClick}>
                {isRepeat ? 'Send it again' : mayBook ? 'Book it' : 'Preview'}
              </Button>
            </Group>
            <Failure error={preview.error ?? (isUnanswered(book.error) ? null : book.error)} />
          </Stack>
        </form>
      )}
    </Modal>
  );
}

/** The preview and the booking have one button, so its second click would book what nobody has read. */
function ignoreDoubleClick(event: MouseEvent): void {
  if (event.detail > 1) event.preventDefault();
}

/** The same for the repeats of a key. */
function ignoreHeldEnter(event: KeyboardEvent): void {
  if (event.key === 'Enter' && event.repeat) event.preventDefault();
}

function Unanswered({ tenantId, error }: { tenantId: string; error: unknown }) {
  const requestId = isUnanswered(error) ? error.requestId : null;
  return (
    <Alert color="orange" variant="outline" role="alert" title="A booking was not answered">
      <Text size="sm">
        It may be booked. Look at{' '}
        <Anchor
          component={Link}
          to="/t/$tenantId/credit"
          params={{ tenantId } as never}
          target="_blank"
          underline="always"
          size="sm"
        >
          the entries
        </Anchor>
        , or send it again as it is: it is booked once.
      </Text>
      {requestId ? (
        <Text size="sm" mt="xs">
          Request id <Code>{requestId}</Code>
        </Text>
      ) : null}
    </Alert>
  );
}

function Previewed({ of, currency }: { of: CreditPreview; currency: string }) {
  return (
    <Table>
      <Table.Tbody>
        <Table.Tr>
          <Table.Td>Entry</Table.Td>
          <Table.Td>
            {of.type} of <Money cents={of.amountCents} currency={currency} />
          </Table.Td>
        </Table.Tr>
        <Table.Tr>
          <Table.Td>Balance</Table.Td>
          <Table.Td>
            <Money cents={of.balanceBeforeCents} /> → <Money cents={of.balanceAfterCents} currency={currency} />
          </Table.Td>
        </Table.Tr>
      </Table.Tbody>
    </Table>
  );
}
