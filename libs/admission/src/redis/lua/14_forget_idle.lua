-- For the registry, not for a tenant. args: score and id of each tenant without holds. Removes them from `keys[1]`
-- (zset: tenant by the time at which a process last registered it, by its own clock), unless that time is another now.
local function forget_idle(keys, args)
  for i = 1, #args, 2 do
    local at = redis.call('ZSCORE', keys[1], args[i + 1])
    if at and tonumber(at) == tonumber(args[i]) then
      redis.call('ZREM', keys[1], args[i + 1])
    end
  end
  return 1
end
