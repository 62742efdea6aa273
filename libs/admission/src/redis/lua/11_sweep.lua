-- Expired holds, and settled holds whose release is overdue.

-- rule 24: the expired event
-- The usage event of an expired pending hold: its draft, what was recorded as delivered, and the cost, which is at most
-- the held amount. Also returns the cost and the tokens. The model and the price of what served it come after those of
-- the draft, and replace them for every reader of JSON.
local function expired_event(h)
  local prompt_tokens, cached_tokens, completion_tokens, delivered_nanos, served = cmsgpack.unpack(h.delivered)
  local cost = least(delivered_nanos, h.nanos)
  -- The draft is a JSON object: the other fields of the event go before its last brace.
  local event = h.draft:sub(1, -2) .. (served and ',' .. served or '') .. string.format(
    ',"promptTokens":%.0f,"cachedTokens":%.0f,"completionTokens":%.0f,"costNanos":"%s","overrunNanos":"%s",'
      .. '"estimated":true,"outcome":"expired","endedAt":"%s"}',
    prompt_tokens, cached_tokens, completion_tokens, text(cost), text(sub(delivered_nanos, cost)),
    iso_time(h.progressed_ms))
  return event, cost, prompt_tokens + completion_tokens
end

-- rule 23: expiry
-- Ends at most `limit` pending holds past their deadline: settled at what was delivered, or removed if nothing was.
-- Returns the records of the settled ones. A last heartbeat in the future by this clock (it went back) counts as now,
-- so the hold has a lease from now on.
local function expire(keys, now, limit)
  local now_ms = math.floor(now / 1000)
  local bounds = redis.call('HMGET', keys[CREDIT], 'deadline_ms', 'progressed_ms')
  local is_ahead = tonumber(bounds[2] or 0) > now_ms
  if not bounds[1] or bounds[1] == '' or (tonumber(bounds[1]) > now_ms and not is_ahead) then
    return {}
  end
  -- 1. Read all pending holds, one for each running request: about once a lease.
  local ends, next_ms, writes = {}, nil, {}
  local all = redis.call('HGETALL', keys[PENDING])
  for i = 1, #all, 2 do
    local h = unpack_hold(all[i + 1])
    -- rule 22: dates in the future
    if h.progressed_ms > now_ms then
      h.deadline_ms, h.progressed_ms = now_ms + h.deadline_ms - h.progressed_ms, now_ms
      writes[#writes + 1] = all[i]
      writes[#writes + 1] = pack_hold(h)
    end
    if h.deadline_ms <= now_ms and #ends < limit then
      local e = { id = all[i], tokens = 0, claim = h.claim }
      if h.delivered then
        e.record, e.cost, e.tokens = expired_event(h)
        e.month = month_of(h.progressed_ms * 1000)
      end
      ends[#ends + 1] = e
    else
      next_ms = math.min(next_ms or h.deadline_ms, h.deadline_ms)
    end
  end
  in_parts('HSET', keys[PENDING], writes, 2)
  -- 2. Settle or remove them.
  local records = {}
  if #ends > 0 then
    end_holds(keys, now, ends)
    for _, e in ipairs(ends) do
      records[#records + 1] = e.record
      -- rule 32: the answer of a claim
      -- Nobody has the answer, and the request must not be charged again. A sweep of the former version names no keys
      -- of claims.
      if e.record and e.claim and keys[CLAIMS] then
        settle_claim(keys, e.claim, e.id, '')
      end
    end
  end
  redis.call('HSET', keys[CREDIT], 'deadline_ms', next_ms and text(next_ms) or '')
  if is_ahead then
    redis.call('HSET', keys[CREDIT], 'progressed_ms', text(now_ms))
  end
  return records
end

-- args: now_ms or '', the maximum number of expired holds, the maximum number of settled ones, confirm_after_ms.
-- Returns the number of expired holds that were settled, the numbers of pending and settled holds now, and the records:
-- those of the expired holds, then those of the settled holds that were not confirmed in time, the oldest first.
local function sweep(keys, args)
  local now = now_us(args[1])
  local now_ms = math.floor(now / 1000)
  -- A hold that was settled just now is not overdue, whatever the waiting time. So the others are looked up first.
  local limit = tonumber(args[3])
  -- rule 22: dates in the future
  -- Unconfirmed since a time in the future counts as since now.
  local ahead = {}
  local in_future = limit > 0
    and redis.call('ZRANGEBYSCORE', keys[UNCONFIRMED], '(' .. text(now_ms), '+inf', 'LIMIT', 0, limit) or {}
  for _, id in ipairs(in_future) do
    ahead[#ahead + 1] = text(now_ms)
    ahead[#ahead + 1] = id
  end
  in_parts('ZADD', keys[UNCONFIRMED], ahead, 2)
  local latest = text(now_ms - tonumber(args[4]))
  local owed = limit > 0
    and redis.call('ZRANGEBYSCORE', keys[UNCONFIRMED], '-inf', latest, 'LIMIT', 0, limit) or {}
  local out = expire(keys, now, tonumber(args[2]))
  local expired = #out
  -- rule 25: unconfirmed settlements
  local moved = {}
  for i, packed in ipairs(fetch(keys[SETTLED], owed)) do
    if packed then
      local _, record = cmsgpack.unpack(packed)
      out[#out + 1] = record
    end
    -- Also a stray id, which nothing of ours leaves: it would stay the oldest, and keep the others from their turn.
    moved[#moved + 1] = text(now_ms)
    moved[#moved + 1] = owed[i]
  end
  in_parts('ZADD', keys[UNCONFIRMED], moved, 2)
  return { expired, redis.call('HLEN', keys[PENDING]), redis.call('ZCARD', keys[UNCONFIRMED]), out }
end
