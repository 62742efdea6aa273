import {
  Box,
  Card,
  Code,
  CopyButton,
  Button,
  Group,
  ScrollArea,
  Skeleton,
  Stack,
  Table,
  Text,
  Title,
} from '@mantine/core';
import type { UseQueryResult } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { Dialogs } from './dialogs';
import { Failure } from './failure';
import { Time } from './format';

/** A page with its title, a line on what it shows, and its main button. */
export function Page(props: { title: string; about?: ReactNode; action?: ReactNode; children: ReactNode }) {
  const { title, about, action, children } = props;
  return (
    <Stack>
      <Group justify="space-between" align="flex-start">
        {/* It shrinks before the button moves below it. */}
        <Box flex="1 1 260px">
          <Title order={1} size="h2">
            {title}
          </Title>
          {about ? <Text mt={4}>{about}</Text> : null}
        </Box>
        {action}
      </Group>
      <Dialogs>{children}</Dialogs>
    </Stack>
  );
}

/** Browsers print a page or save it as PDF. */
export const PrintButton = () => (
  <Button className="screen" variant="default" onClick={() => window.print()}>
    Print or save as PDF
  </Button>
);

/** What is known of one thing, a name and a value each. */
export function Facts({ rows }: { rows: readonly (readonly [string, ReactNode])[] }) {
  return (
    <Table variant="vertical" layout="fixed">
      <Table.Tbody>
        {rows.map(([name, value]) => (
          <Table.Tr key={name}>
            <Table.Th w={130}>{name}</Table.Th>
            <Table.Td className="figures">{value}</Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  );
}

/** A sum and what it is made of. */
export function Sums({ of }: { of: readonly (readonly [label: string, amount: ReactNode])[] }) {
  return (
    <Table maw={420} aria-label="Sum">
      <Table.Tbody>
        {of.map(([label, amount]) => (
          <Table.Tr key={label}>
            <Table.Th scope="row">{label}</Table.Th>
            <Table.Td ta="right">{amount}</Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  );
}

const ROW_HEIGHT = 180;

/** The answer of a query: its place while it loads, and its error, also above an answer that could not be renewed. */
export function Answer<T>({ of, children }: { of: AnsweredQuery<T>; children: (data: T) => ReactNode }) {
  return (
    <>
      <Unanswered of={of} />
      {of.data !== undefined ? children(of.data) : of.error ? null : <Loading />}
    </>
  );
}

type RefetchableQuery = Pick<UseQueryResult, 'error' | 'dataUpdatedAt'> & { refetch: () => Promise<unknown> };
/** Of the query of a list: whether only what follows the loaded rows is missing. */
type NextPageState = { isFetchNextPageError?: boolean; fetchNextPage?: () => Promise<unknown> };
type AnsweredQuery<T> = RefetchableQuery & NextPageState & { data: T | undefined };

/** Why a query has no answer, or no new one. It says that an older answer below it may be out of date. */
export function Unanswered({ of }: { of: RefetchableQuery & NextPageState }) {
  if (!of.error) return null;
  if (of.isFetchNextPageError) return <Failure error={of.error} retry={() => void of.fetchNextPage?.()} />;
  return (
    <Stack gap={4}>
      <Failure error={of.error} retry={() => void of.refetch()} />
      {of.dataUpdatedAt === 0 ? null : (
        <Text size="sm" fw={600}>
          What is below may be out of date. It is from <Time at={new Date(of.dataUpdatedAt).toISOString()} /> UTC.
        </Text>
      )}
    </Stack>
  );
}

/** The place of something that loads. */
export const Loading = () => <Skeleton h={ROW_HEIGHT} aria-label="Loading" />;

interface DataTableProps {
  label: string;
  /** Titles of the columns. One that begins with # has numbers, which are aligned on the right. */
  head: readonly string[];
  rows: readonly ReactNode[][];
  /** The ids of the rows, if they may move while the page is open: focus and open dialogs stay with their row. */
  ids?: readonly string[];
}

const NUMBERS = '#';
/** The last column, which has buttons or links. It stays in view when the table scrolls sideways. */
const STAYS: ReadonlySet<string | undefined> = new Set(['Actions', 'Books', 'Receipt']);
/** A table becomes no narrower than this for each column, so that words stay whole. Few columns fit on a phone. */
const COLUMN_MIN_PX = 105;
const MAX_MIN_PX = 560;

/** A table that scrolls sideways on a narrow screen. */
export function DataTable({ label, head, rows, ids }: DataTableProps) {
  const align = head.map((title) => (title.startsWith(NUMBERS) ? 'right' : 'left'));
  const classOf = (index: number) =>
    STAYS.has(head[index]) ? 'actions' : align[index] === 'right' ? 'figures' : undefined;
  return (
    <ScrollArea type="auto" offsetScrollbars="x" viewportProps={{ tabIndex: 0, role: 'region', 'aria-label': label }}>
      <Table highlightOnHover verticalSpacing="xs" miw={Math.min(head.length * COLUMN_MIN_PX, MAX_MIN_PX)}>
        <Table.Thead>
          <Table.Tr>
            {head.map((title, index) => (
              <Table.Th key={index} ta={align[index]} className={STAYS.has(title) ? 'actions' : undefined}>
                {title.replace(NUMBERS, '')}
              </Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {rows.map((cells, row) => (
            <Table.Tr key={ids?.[row] ?? row}>
              {cells.map((cell, index) => (
                <Table.Td key={index} ta={align[index]} className={classOf(index)}>
                  {cell}
                </Table.Td>
              ))}
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </ScrollArea>
  );
}

/** Nothing to show yet, and a command that changes that. */
export function Empty({ text, command }: { text: string; command?: string }) {
  return (
    <Card withBorder padding="lg">
      <Text size="sm">{text}</Text>
      {command === undefined ? null : <Command text={command} />}
    </Card>
  );
}

/** A text to copy. It may be a secret, so it is never kept. */
export function Command({ text, label = 'Command' }: { text: string; label?: string }) {
  return (
    <Stack gap={4} mt="sm">
      <Code block className="secret" aria-label={label}>
        {text}
      </Code>
      <CopyButton value={text}>
        {({ copied, copy }) => (
          <Button size="xs" variant="default" onClick={copy} w="fit-content">
            {copied ? 'Copied' : 'Copy'}
          </Button>
        )}
      </CopyButton>
    </Stack>
  );
}
