import { Badge, Button, Group, Pill, Text, TextInput } from '@mantine/core';
import { useInfiniteQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { useState, type FormEvent } from 'react';
import type { RequestList } from '../../../src/api/answers';
import { api, queryOf } from '../backend/api';
import { Filter, KeyFilter, ModelFilter } from '../parts/filter';
import { count, localTime, Money, seconds, secondsOf, Time } from '../parts/format';
import { askFirstEveryMs } from '../backend/live-lists';
import { usePerson, useTenant } from '../backend/me';
import { More } from '../parts/more';
import { NoRequests } from '../playground/no-requests';
import { OUTCOMES, outcomeLabel } from '../usage/outcomes';
import { DataTable, Empty, Loading, Page, Unanswered } from '../parts/page';
import { RangeFields } from '../usage/range-fields';
import { RequestSheet } from './request-sheet';

export interface RequestsSearch {
  model?: string | undefined;
  keyId?: string | undefined;
  outcome?: string | undefined;
  /** The `x-request-id` that their callers chose. */
  callerRequestId?: string | undefined;
  /** When they ended: from inclusive, to exclusive; ISO 8601. */
  from?: string | undefined;
  to?: string | undefined;
  /** The request whose sheet is open. */
  request?: string | undefined;
}

const REQUEST_ID = /^req_[0-9a-z]{26}$/;
const CALLER_REQUEST_ID = /^[A-Za-z0-9_-]{1,64}$/;
const MINUTE_CHARS = 16;
/** Without seconds, UTC. */
const minute = (at: string) => at.slice(0, MINUTE_CHARS).replace('T', ' ');

/** The times of a search. The address may have any text. */
const spanOf = ({ from, to }: RequestsSearch, textOf: (at: string) => string): string => {
  const shown = (at: string) => (Number.isNaN(Date.parse(at)) ? at : textOf(at));
  return `${from === undefined ? 'the beginning' : shown(from)} to ${to === undefined ? 'now' : shown(to)}`;
};

/** The served requests, newest first. The filters and the open request are in the URL. */
export function RequestsPage() {
  const { id, path } = useTenant();
  const { currency } = usePerson();
  const navigate = useNavigate();
  const search: RequestsSearch = useSearch({ strict: false });
  const { model, keyId, outcome, callerRequestId, from, to } = search;
  const filters = { model, keyId, outcome, callerRequestId, from, to };
  const requests = useInfiniteQuery({
    queryKey: ['requests', id, filters],
    queryFn: ({ pageParam }) => api.get<RequestList>(path('requests') + queryOf({ after: pageParam, ...filters })),
    initialPageParam: '',
    getNextPageParam: ({ nextCursor }) => nextCursor,
    refetchInterval: askFirstEveryMs,
  });
  const choose = (next: RequestsSearch) =>
    void navigate({ to: '/t/$tenantId/requests', params: { tenantId: id }, search: next });
  const rows = requests.data?.pages.flatMap(({ data }) => data) ?? [];
  const isFiltered = Object.values(filters).some((filter) => filter !== undefined);
  return (
    <Page title="Requests" about="What was served, newest first. Prompts and answers are not stored.">
      <Group>
        <ModelFilter value={model} onChange={(value) => choose({ ...search, model: value })} />
        <KeyFilter
          value={keyId}
          name={rows.find((event) => event.keyId === keyId)?.keyName ?? undefined}
          onChange={(value) => choose({ ...search, keyId: value })}
        />
        <Filter
          label="Status"
          value={outcome}
          data={OUTCOMES}
          onChange={(value) => choose({ ...search, outcome: value })}
        />
        <RangeFields value={{ from, to }} onChange={(range) => choose({ ...search, ...range })} />
        <FindRequest
          onOwn={(request) => choose({ ...search, callerRequestId: undefined, request })}
          onCallers={(callersId) => choose({ ...search, callerRequestId: callersId })}
        />
        {callerRequestId === undefined ? null : (
          <Pill
            withRemoveButton
            onRemove={() => choose({ ...search, callerRequestId: undefined })}
            removeButtonProps={{ 'aria-label': 'All request ids', 'aria-hidden': false, tabIndex: 0 }}
          >
            {callerRequestId}
          </Pill>
        )}
        {from !== undefined || to !== undefined ? (
          <Pill
            title={spanOf(search, localTime)}
            withRemoveButton
            onRemove={() => choose({ ...search, from: undefined, to: undefined })}
            removeButtonProps={{ 'aria-label': 'All times', 'aria-hidden': false, tabIndex: 0 }}
          >
            {spanOf(search, minute)}
          </Pill>
        ) : null}
      </Group>
      <Unanswered of={requests} />
      {requests.isPending ? <Loading /> : null}
      {requests.data && rows.length === 0 && !requests.hasNextPage ? (
        isFiltered ? (
          <Empty text="No request matches these filters." />
        ) : (
          <NoRequests text="There are no requests yet." />
        )
      ) : null}
      {rows.length > 0 ? (
        <DataTable
          label="Requests"
          ids={rows.map((event) => event.id)}
          head={[
            'Ended (UTC)',
            'Model',
            'Key',
            '#Input',
            '#Output',
            '#Cost',
            'Status',
            '#First token (s)',
            '#Seconds',
            'Books',
          ]}
          rows={rows.map((event) => [
            <Time at={event.endedAt} />,
            event.model,
            event.keyName ?? event.keyId,
            count(event.promptTokens),
            count(event.completionTokens),
            <Money nanos={event.costNanos} currency={currency} />,
            <Badge variant="outline" color={event.outcome === 'complete' ? 'green' : 'orange'}>
              {outcomeLabel(event.outcome)}
            </Badge>,
            <span className="figures">{seconds(event.firstMs)}</span>,
            <span className="figures">{secondsOf(event)}</span>,
            <Button
              size="compact-xs"
              variant="default"
              aria-label={`Show the books of ${event.id}`}
              onClick={() => choose({ ...search, request: event.id })}
            >
              Show
            </Button>,
          ])}
        />
      ) : null}
      <More label={rows.length === 0 ? 'Search older requests' : 'Older requests'} of={requests} />
      {search.request === undefined ? null : (
        <RequestSheet
          key={search.request}
          requestId={search.request}
          onClose={() => choose({ ...search, request: undefined })}
        />
      )}
    </Page>
  );
}

/**
 * Finds a request by its own id, which its answer has as `x-tollgate-request-id`. Or finds the requests with the
 * `x-request-id` that callers chose, as in their logs. Several requests may have the same.
 */
function FindRequest({ onOwn, onCallers }: { onOwn: (id: string) => void; onCallers: (id: string) => void }) {
  const [typed, setTyped] = useState('');
  const [isWrong, setWrong] = useState(false);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    const id = typed.trim();
    setWrong(!CALLER_REQUEST_ID.test(id));
    if (REQUEST_ID.test(id)) onOwn(id);
    else if (CALLER_REQUEST_ID.test(id)) onCallers(id);
  };
  return (
    <form onSubmit={submit}>
      <Group gap="xs">
        <TextInput
          size="xs"
          aria-label="Request id"
          placeholder="req_… or x-request-id"
          value={typed}
          error={isWrong}
          aria-describedby={isWrong ? 'request-id-error' : undefined}
          onChange={({ currentTarget }) => setTyped(currentTarget.value)}
        />
        <Button type="submit" size="xs" variant="default">
          Find
        </Button>
        {isWrong ? (
          <Text id="request-id-error" role="alert" size="sm">
            An id has at most 64 letters, digits, _ and -. It is in the header x-tollgate-request-id of the answer, or
            it is the x-request-id of the caller.
          </Text>
        ) : null}
      </Group>
    </form>
  );
}
