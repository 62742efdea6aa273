import {
  MAX_COMPARED_HOURS,
  MAX_UNBILLED_LINES,
  RequestError,
  type ReplyOf,
  type RequestOf,
} from '@tollgate/contracts';
import { query, transaction } from '@tollgate/postgres';
import type { DataSource } from 'typeorm';
import { isHour } from '../hours';

const MAX_ID_CHARS = 64;
const MAX_NAME_CHARS = 256;

/**
 * Answers `metering.backends.unbilled`. A redelivered report changes nothing. Old reports are deleted. RequestError
 * invalid_parameter.
 */
export async function recordUnbilled(
  dataSource: DataSource,
  { id, work }: RequestOf<'metering.backends.unbilled'>,
): Promise<ReplyOf<'metering.backends.unbilled'>> {
  const isReport = isText(id, MAX_ID_CHARS) && Array.isArray(work) && work.length <= MAX_UNBILLED_LINES;
  if (!isReport || !work.every(isLine))
    throw new RequestError(
      'invalid_parameter',
      `id must have at most ${MAX_ID_CHARS} characters, and work must be a list of at most ${MAX_UNBILLED_LINES} lines.`,
    );
  await transaction(dataSource, async (tx) => {
    await query(
      tx,
      `INSERT INTO backend_unbilled (report_id, hour, backend, prompt_tokens, completion_tokens)
       SELECT $1, * FROM unnest($2::timestamptz[], $3::text[], $4::bigint[], $5::bigint[]) ON CONFLICT DO NOTHING`,
      [
        id,
        work.map(({ hour }) => hour),
        work.map(({ backend }) => backend),
        work.map(({ promptTokens }) => promptTokens),
        work.map(({ completionTokens }) => completionTokens),
      ],
    );
    await query(tx, `DELETE FROM backend_unbilled WHERE hour < now() - make_interval(hours => $1)`, [
      MAX_COMPARED_HOURS + 1,
    ]);
  });
  return { recorded: true };
}

function isLine(value: unknown): boolean {
  const { backend, hour, promptTokens, completionTokens } = (value ?? {}) as Record<string, unknown>;
  const areTokens = [promptTokens, completionTokens].every((n) => Number.isSafeInteger(n) && Number(n) >= 0);
  return isText(backend, MAX_NAME_CHARS) && isHour(hour) && areTokens;
}

const isText = (value: unknown, maxChars: number): boolean =>
  typeof value === 'string' && value.length <= maxChars && !value.includes('\0');
