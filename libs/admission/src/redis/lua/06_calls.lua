-- The request limit of the management API, in one more key of the tenant: token id → when its bucket is full again
-- (µs). The key expires when all buckets are full.

-- args: now_ms or '', the token, the time between two calls at the steady rate (µs). Takes a call from the bucket,
-- which holds the calls of a minute. Returns 0, or the µs until the next call is free. A clock that went back costs a
-- minute at most.
local function take_call(keys, args)
  local now, interval = now_us(args[1]), tonumber(args[3])
  local known = math.max(tonumber(redis.call('HGET', keys[1], args[2]) or 0), now)
  if known > now + MINUTE_US then
    -- The bucket fills from now on. Otherwise each call would start it again.
    known = now + MINUTE_US
    redis.call('HSET', keys[1], args[2], string.format('%.0f', known))
  end
  local full = known + interval
  if full > now + MINUTE_US then
    return full - now - MINUTE_US
  end
  redis.call('HSET', keys[1], args[2], string.format('%.0f', full))
  redis.call('PEXPIRE', keys[1], math.floor(2 * MINUTE_US / 1000))
  return 0
end
