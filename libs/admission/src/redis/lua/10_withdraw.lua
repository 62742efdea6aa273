-- Debits that leave by the books (refunds). Field `withdrawals` of the tenant's hash: { version, nanos } of each debit
-- that is not booked yet. The balance beside it excludes them.
local function withdrawals_of(keys)
  local packed = redis.call('HGET', keys[CREDIT], 'withdrawals')
  return packed and cmsgpack.unpack(packed) or {}
end

local function save_withdrawals(keys, list)
  if #list > 0 then
    redis.call('HSET', keys[CREDIT], 'withdrawals', cmsgpack.pack(list))
  else
    redis.call('HDEL', keys[CREDIT], 'withdrawals')
  end
end

-- The withdrawals that a balance update of this version does not include, and their sum.
local function withdrawals_after(keys, version)
  local kept, sum = {}, 0
  local list = withdrawals_of(keys)
  for _, one in ipairs(list) do
    if less(version, one[1]) then
      kept[#kept + 1] = one
      sum = add(sum, one[2])
    end
  end
  if #kept < #list then
    save_withdrawals(keys, kept)
  end
  return sum
end

-- rule 29: withdrawals
-- args: '1' to refuse a tenant whose credit was not requested since the store was emptied, version, nanos. Returns {
-- 'unknown' }, or the code and the available amount.
local function withdraw(keys, args)
  local t = load_tenant(keys)
  if args[1] == '1' and not t.restored then
    return { 'unknown', '0' }
  end
  local version, nanos = amount_of(args[2]), amount_of(args[3])
  local list, first = {}, 0
  for _, one in ipairs(withdrawals_of(keys)) do
    if less(one[1], version) or less(version, one[1]) then
      list[#list + 1] = one
    else
      first = one[2]
    end
  end
  local available = add(sub(sub(t.balance, t.settled), t.pending), first)
  if not less(t.version, version) then
    return { 'overtaken', text(available) }
  end
  if less(available, nanos) then
    return { 'refused', text(available) }
  end
  list[#list + 1] = { version, nanos }
  save_withdrawals(keys, list)
  redis.call('HSET', keys[CREDIT], 'balance', text(sub(add(t.balance, first), nanos)))
  if not t.exists then
    redis.call('HSETNX', keys[CREDIT], 'version', '0')
  end
  return { 'withdrawn', text(available) }
end
