import type { RedisLink } from '@tollgate/redis';
import { callIntervalUs, type ManagementCall, waitMs } from '../operations/call-rate';

/** The call of the function `take_call` (lua/06_calls.lua). */
export async function takeCall(link: RedisLink, call: ManagementCall, now: number | ''): Promise<number> {
  const keys = [`tga:{${call.tenantId}}:calls`];
  const [reply] = await link.call([{ function: 'take_call', keys, args: [now, call.tokenId, callIntervalUs(call)] }]);
  if (reply instanceof Error) throw reply;
  return waitMs(Number(reply));
}
