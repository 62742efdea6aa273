import {
  MAX_COMPARED_HOURS,
  MAX_UNBILLED_LINES,
  RequestError,
  type ReplyOf,
  type RequestOf,
} from '@tollgate/contracts';
import { query, transaction } from '@tollgate/postgres';
import type { DataSource } from 'typeorm';
import { HOUR_FORM } from '../hours';

const MAX_NAME_CHARS = 256;

/**
 * Answers `metering.backends.unbilled`. A redelivered report changes nothing. Old reports are deleted. RequestError
 * invalid_parameter.
 */
export async function recordUnbilled(
  dataSource: DataSource,
  { id, work }: RequestOf<'metering.backends.unbilled'>,
): Promise<ReplyOf<'metering.backends.unbilled'>> {
  const valid =
    typeof id === 'string' && Array.isArray(work) && work.length <= MAX_UNBILLED_LINES && work.every(isLine);
  if (!valid)
    throw new RequestError(
      'invalid_parameter',
      `id must be a string, and work a list of at most ${MAX_UNBILLED_LINES} lines of unbilled work.`,
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
  const isName = typeof backend === 'string' && backend.length <= MAX_NAME_CHARS && !backend.includes('\0');
  const isHour = typeof hour === 'string' && HOUR_FORM.test(hour) && !Number.isNaN(Date.parse(hour));
  return isName && isHour && [promptTokens, completionTokens].every((n) => Number.isSafeInteger(n) && Number(n) >= 0);
}
