import { createHmac } from 'node:crypto';
import type { Pool } from 'pg';

export const CODE_STEP_S = 30;
export const CODE_DIGITS = 6;
/** The sign-in library accepts codes of this many steps before and after the current one. */
const TOLERATED_STEPS = 1;

/**
 * Takes the time step of a code, so that no process accepts a code of this step or an earlier one again.
 * @param factor `stored`: its secret as the database has it
 * @returns false: the code is wrong, or its step was taken
 */
export async function takeStep(
  pool: Pool,
  { userId, stored, secret }: { userId: string; stored: string; secret: string },
  code: string,
): Promise<boolean> {
  const step = stepOf(code, secret);
  if (step === null) return false;
  // Of two calls at the same time, the second one waits for the first one's row, and then finds its step.
  const { rowCount } = await pool.query(
    `UPDATE "twoFactor" SET used_step = $3
     WHERE "userId" = $1 AND "secret" = $2 AND (used_step IS NULL OR used_step < $3)`,
    [userId, stored, step],
  );
  return rowCount === 1;
}

/** The newest of the steps that this code is of. Null: the code is wrong. */
function stepOf(code: string, secret: string): number | null {
  const present = Math.floor(Date.now() / (CODE_STEP_S * 1000));
  for (let step = present + TOLERATED_STEPS; step >= present - TOLERATED_STEPS; step--)
    if (codeAt(secret, step) === code) return step;
  return null;
}

/** The code of a step, counted from 1970 (RFC 6238). */
export function codeAt(secret: string, step: number): string {
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64BE(BigInt(step));
  const mac = createHmac('sha1', secret).update(counter).digest();
  const truncated = mac.readUInt32BE(mac.at(-1)! & 0xf) & 0x7fffffff;
  return String(truncated % 10 ** CODE_DIGITS).padStart(CODE_DIGITS, '0');
}
