-- For the registry, not for a tenant. args: a time (ms), tenants without holds. Removes them from `keys[1]` (zset:
-- tenant by the time at which a process last registered it), except those that a process registered after that time.
local function forget_idle(keys, args)
  for i = 2, #args do
    local told_ms = redis.call('ZSCORE', keys[1], args[i])
    if told_ms and tonumber(told_ms) <= tonumber(args[1]) then
      redis.call('ZREM', keys[1], args[i])
    end
  end
  return 1
end
