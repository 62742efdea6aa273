import { Anchor, Button, Code, CopyButton, Drawer, Group, Stack, Text, Timeline } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import type { RequestBooks } from '../../../src/api/answers';
import { api } from '../backend/api';
import { count, Money, seconds, secondsOf, Time } from '../parts/format';
import { usePerson, useTenant } from '../backend/me';
import { outcomeLabel } from '../usage/outcomes';
import { Answer, Facts } from '../parts/page';
import { pauseOfSheetMs } from './request-sheet-pause';

/** One request from its tokens to its invoice. */
export function RequestSheet({ requestId, onClose }: { requestId: string; onClose: () => void }) {
  const { id, path } = useTenant();
  const request = useQuery({
    queryKey: ['request', id, requestId],
    queryFn: () => api.get<RequestBooks>(path('requests', requestId)),
    refetchInterval: ({ state }) => pauseOfSheetMs(state.data),
  });
  return (
    <Drawer.Root opened onClose={onClose} position="right">
      <Drawer.Overlay />
      <Drawer.Content>
        {/* The element is a header, and a page has one banner. */}
        <Drawer.Header role="none">
          <Drawer.Title>Request</Drawer.Title>
          <Drawer.CloseButton aria-label="Close" />
        </Drawer.Header>
        <Drawer.Body>
          <Answer of={request}>{(data) => <Books {...data} />}</Answer>
        </Drawer.Body>
      </Drawer.Content>
    </Drawer.Root>
  );
}

function Books({ event, keyName, life, books, price }: RequestBooks) {
  const { currency } = usePerson();
  const isExtended = life !== null && life.extensions > 0;
  const uncached = event.promptTokens - event.cachedTokens;
  return (
    <Stack>
      <Id label="Request" value={event.id} />
      <Facts
        rows={[
          ['Model', event.model],
          ['Key', keyName ?? event.keyId],
          ['Status', outcomeLabel(event.outcome)],
          ['Kind', `${event.kind}${event.stream ? ', streamed' : ''}`],
          ['Seconds', secondsOf(event)],
          ['First token', life?.firstMs == null ? '–' : `after ${seconds(life.firstMs)} s`],
          ['Input tokens', `${count(uncached)} and ${count(event.cachedTokens)} cached`],
          ['Output tokens', count(event.completionTokens)],
          ['Counted by', event.estimated ? 'Tollgate' : 'the model'],
          ['Price version', event.priceVersion],
          ...(price === null ? [] : [['Arithmetic', <Arithmetic event={event} price={price} />] as const]),
          ['Cost', <Money nanos={event.costNanos} currency={currency} />],
        ]}
      />
      <Timeline active={stepsDone(books) + (isExtended ? 1 : 0)} bulletSize={16} lineWidth={2} fz="sm">
        <Timeline.Item title="Admitted, credit held">
          <Time at={event.startedAt} />
          {life === null ? null : (
            <Text size="sm">
              <Money nanos={life.heldNanos} currency={currency} />
            </Text>
          )}
        </Timeline.Item>
        {isExtended ? (
          <Timeline.Item title={`Extended ${times(life.extensions)}`}>
            <Text size="sm">
              to <Money nanos={life.endNanos} currency={currency} />
            </Text>
          </Timeline.Item>
        ) : null}
        <Timeline.Item title="Settled">
          <Time at={event.endedAt} />
        </Timeline.Item>
        <Timeline.Item title={books === null ? 'The charge is on its way to the books' : 'Charged'}>
          {books === null ? null : (
            <>
              <Id label="Charge" value={books.charge.id} />
              <Text size="sm">
                <Money nanos={books.charge.costNanos} currency={currency} />, billed in {books.charge.period}. In the
                books a charge has the id of its request.
              </Text>
            </>
          )}
        </Timeline.Item>
        <Timeline.Item title="Ledger entry">
          <Entry books={books} currency={currency} />
        </Timeline.Item>
        <Timeline.Item title="Invoice">
          <Invoice books={books} />
        </Timeline.Item>
      </Timeline>
    </Stack>
  );
}

const times = (n: number): string => (n === 1 ? 'once' : `${count(n)} times`);

/** The parts of the cost. Prices are per million tokens. */
function Arithmetic({ event, price }: { event: RequestBooks['event']; price: NonNullable<RequestBooks['price']> }) {
  const parts = [
    [event.promptTokens - event.cachedTokens, price.inputFemtos, 'input'],
    [event.cachedTokens, price.cachedInputFemtos, 'cached'],
    [event.completionTokens, price.outputFemtos, 'output'],
  ] as const;
  return (
    <>
      {parts
        .filter(([tokens]) => tokens > 0)
        .map(([tokens, femtos, name]) => (
          <Text key={name} size="sm" className="factors">
            {/* Femtos a token are nanos a million tokens. */}
            {count(tokens)} {name} × <Money nanos={femtos} /> / 1,000,000
          </Text>
        ))}
      {price.requestNanos === '0' ? null : (
        <Text size="sm">
          + <Money nanos={price.requestNanos} /> per request
        </Text>
      )}
      {event.overrunNanos === '0' ? null : (
        <Text size="sm">
          − <Money nanos={event.overrunNanos} /> beyond what was held, not charged
        </Text>
      )}
    </>
  );
}

function Entry({ books, currency }: { books: RequestBooks['books']; currency: string }) {
  const { id, may } = useTenant();
  if (books?.entry)
    return (
      <>
        <Id label="Entry" value={books.entry.id}>
          {may('credit.read') ? (
            <Anchor
              component={Link}
              to="/t/$tenantId/credit/$entryId"
              params={{ tenantId: id, entryId: books.entry.id } as never}
              underline="always"
              aria-label={`Receipt ${books.entry.id}`}
            >
              {books.entry.id}
            </Anchor>
          ) : null}
        </Id>
        <Text size="sm">
          Debits <Money cents={-books.entry.amountCents} currency={currency} /> for this and other requests.
        </Text>
      </>
    );
  if (books?.carriedOn) return 'Less than a cent at the end of its month, so a later entry includes it.';
  return 'Not posted yet: requests are gathered into whole cents.';
}

function Invoice({ books }: Pick<RequestBooks, 'books'>) {
  const { id, may } = useTenant();
  if (!books?.invoice)
    return books?.monthClosed ? 'None: nothing was debited in its month, which is closed.' : 'Its month is open.';
  const { period, accountingNumber, status } = books.invoice;
  const number = String(accountingNumber);
  return (
    <>
      <Id label="Invoice number" value={number}>
        {may('credit.read') ? (
          <Anchor
            component={Link}
            to="/t/$tenantId/invoices/$number"
            params={{ tenantId: id, number } as never}
            underline="always"
            aria-label={`Invoice ${number}`}
          >
            {number}
          </Anchor>
        ) : null}
      </Id>
      <Text size="sm">
        {period}, {status}
      </Text>
    </>
  );
}

/** The index of the last step that is done. */
function stepsDone(books: RequestBooks['books']): number {
  if (books === null) return 1;
  if (books.invoice !== null || books.monthClosed) return 4;
  return books.entry === null && !books.carriedOn ? 2 : 3;
}

/** An id or number to copy. `children`: a link to what has it, if there is one. */
function Id({ label, value, children }: { label: string; value: string; children?: ReactNode }) {
  return (
    <Group gap="xs" wrap="nowrap">
      <Code className="secret">{children ?? value}</Code>
      <CopyButton value={value}>
        {({ copied, copy }) => (
          <Button size="compact-xs" variant="default" onClick={copy} aria-label={`Copy ${label}`}>
            {copied ? 'Copied' : 'Copy'}
          </Button>
        )}
      </CopyButton>
    </Group>
  );
}
