-- Claims: Idempotency-Keys in use, in four more keys of the tenant's slot. Only calls with a claim name
-- these keys, and the sweep the first of them.
--   6 claims        hash   claim id → request id, fingerprint, time (ms), settled
--   7 claim_times   zset   claim id by that time
--   8 answers       hash   claim id → sealed answer; the characters of all of them under TOTAL
--   9 answer_times  zset   claim id by the time of its claim
-- A claim is taken by the call that makes its hold, and settled by the call that settles it: of its gateway, or of the
-- sweep. So it needs no end of its own: if its hold is not pending, and it was not settled, then the request was not
-- charged, and the claim is free.
local CLAIMS, CLAIM_TIMES, ANSWERS, ANSWER_TIMES = 6, 7, 8, 9
local TOTAL = '*'
-- Claims that an admission looks at beside as many as it adds, so that a tenant with too many gets below its bound.
local LOOK = 10
-- Answers are kept while Redis uses less of its memory than this. The rest is for holds.
local MEMORY_FOR_ANSWERS = 0.8

-- The claim if a request runs with it or was settled with it, or nil: it is free.
local function standing_claim(keys, id, now_ms, keep_ms)
  local packed = redis.call('HGET', keys[CLAIMS], id)
  if not packed then
    return nil
  end
  local c = { packed = packed }
  c.request_id, c.fingerprint, c.created_ms, c.settled = cmsgpack.unpack(packed)
  if c.settled then
    return c.created_ms > now_ms - keep_ms and c or nil
  end
  return redis.call('HEXISTS', keys[PENDING], c.request_id) == 1 and c or nil
end

local function drop_answer(keys, id)
  local chars = redis.call('HSTRLEN', keys[ANSWERS], id)
  if chars > 0 then
    redis.call('HDEL', keys[ANSWERS], id)
    redis.call('ZREM', keys[ANSWER_TIMES], id)
    redis.call('HINCRBY', keys[ANSWERS], TOTAL, -chars)
  end
end

-- rule 33: the oldest claims
-- Deletes claims that are older than keep_ms or beyond the newest `max`, the oldest first, but none whose request is
-- running. Looks at `look` claims.
local function forget_oldest(keys, now_ms, keep_ms, max, look)
  local spare = max - redis.call('ZCARD', keys[CLAIM_TIMES])
  local oldest = redis.call('ZRANGE', keys[CLAIM_TIMES], 0, look - 1, 'WITHSCORES')
  for i = 1, #oldest, 2 do
    local id, created_ms = oldest[i], tonumber(oldest[i + 1])
    local is_old = created_ms <= now_ms - keep_ms
    if not is_old and (i + 1) / 2 > -spare then
      return
    end
    local c = standing_claim(keys, id, now_ms, keep_ms)
    if not c or c.settled then
      drop_answer(keys, id)
      redis.call('HDEL', keys[CLAIMS], id)
      redis.call('ZREM', keys[CLAIM_TIMES], id)
    end
  end
end

-- Takes the claims [{ id, fingerprint, request id }, …] of the holds that this call has written.
local function take_claims(keys, taken, now_ms, keep_ms, max)
  for _, c in ipairs(taken) do
    -- A free claim of an earlier request, or an expired one, is replaced.
    drop_answer(keys, c[1])
    redis.call('HSET', keys[CLAIMS], c[1], cmsgpack.pack(c[3], c[2], now_ms, false))
    redis.call('ZADD', keys[CLAIM_TIMES], now_ms, c[1])
  end
  forget_oldest(keys, now_ms, keep_ms, max, LOOK + #taken)
  -- Redis itself deletes all claims of a tenant that stays idle.
  redis.call('PEXPIRE', keys[CLAIMS], keep_ms)
  redis.call('PEXPIRE', keys[CLAIM_TIMES], keep_ms)
end

local function has_memory_for_answers()
  local info = redis.call('INFO', 'memory')
  local used, max = info:match('used_memory:(%d+)'), info:match('maxmemory:(%d+)')
  return tonumber(max) == 0 or tonumber(used) < tonumber(max) * MEMORY_FOR_ANSWERS
end

-- rule 32: the answer of a claim
-- Settles a claim with its answer ('': not kept), and drops the oldest answers of the tenant beyond max_chars. The
-- claims stay, so that their requests do not run again.
local function settle_claim(keys, id, request_id, answer, keep_ms, max_chars)
  local packed = redis.call('HGET', keys[CLAIMS], id)
  if not packed then
    return
  end
  local owner, fingerprint, created_ms, settled = cmsgpack.unpack(packed)
  if owner ~= request_id or settled then
    return
  end
  redis.call('HSET', keys[CLAIMS], id, cmsgpack.pack(owner, fingerprint, created_ms, true))
  if answer == '' or not has_memory_for_answers() then
    return
  end
  redis.call('HSET', keys[ANSWERS], id, answer)
  redis.call('ZADD', keys[ANSWER_TIMES], created_ms, id)
  local chars = redis.call('HINCRBY', keys[ANSWERS], TOTAL, #answer)
  while chars > max_chars do
    local oldest = redis.call('ZRANGE', keys[ANSWER_TIMES], 0, 0)[1]
    if not oldest then
      break
    end
    drop_answer(keys, oldest)
    chars = tonumber(redis.call('HGET', keys[ANSWERS], TOTAL))
  end
  redis.call('PEXPIRE', keys[ANSWERS], keep_ms)
  redis.call('PEXPIRE', keys[ANSWER_TIMES], keep_ms)
end

-- args: now_ms or '', keep_ms, claim ids. Four values for each: 'running', 'settled' or false (free); the fingerprint;
-- the age in ms; the characters of the answer, or false. `writes`: writes each settled claim again, unchanged, so that
-- the caller can wait until replicas have what it read. WAIT covers only the writes of its own connection.
local function recall(keys, args, writes)
  local now_ms = math.floor(now_us(args[1]) / 1000)
  local out = {}
  for i = 3, #args do
    local c = standing_claim(keys, args[i], now_ms, tonumber(args[2]))
    local n = #out
    out[n + 1], out[n + 2], out[n + 3], out[n + 4] = false, false, false, false
    if c then
      if c.settled and writes == true then
        redis.call('HSET', keys[CLAIMS], args[i], c.packed)
      end
      out[n + 1], out[n + 2] = c.settled and 'settled' or 'running', c.fingerprint
      out[n + 3] = math.max(0, now_ms - c.created_ms)
      local chars = c.settled and redis.call('HSTRLEN', keys[ANSWERS], args[i]) or 0
      out[n + 4] = chars > 0 and chars
    end
  end
  return out
end

local function recall_written(keys, args)
  return recall(keys, args, true)
end

-- args: a claim id and its fingerprint, for each claim. The answers of settled claims, whatever their age: `recall` found
-- them a moment ago. False: there is none, or another body has taken the claim since.
local function claim_answers(keys, args)
  local out = {}
  for i = 1, #args, 2 do
    local answer = false
    local packed = redis.call('HGET', keys[CLAIMS], args[i])
    if packed then
      local _, fingerprint, _, settled = cmsgpack.unpack(packed)
      if settled and fingerprint == args[i + 1] then
        answer = redis.call('HGET', keys[ANSWERS], args[i])
      end
    end
    out[#out + 1] = answer
  end
  return out
end
