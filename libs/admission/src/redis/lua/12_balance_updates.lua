-- What the books say: balance, releases and budgets, and the restored credit of a tenant that the store lost.

-- rule 26: newer balance
-- Applies the balance only if it is newer, and the releases always: settled holds are deleted, and their cost leaves
-- the settled sum together with the arrival of the balance that includes it. A balance from before a withdrawal does
-- not undo the withdrawal.
local function take_balance(keys, version, balance, suspended, releases)
  if less(amount_of(redis.call('HGET', keys[CREDIT], 'version')), version) then
    local left = sub(balance, withdrawals_after(keys, version))
    redis.call('HSET', keys[CREDIT], 'version', text(version), 'balance', text(left),
      'suspended', suspended and '1' or '0')
  else
    redis.call('HSETNX', keys[CREDIT], 'version', '0')
  end
  -- rule 27: releases
  local released, gone = 0, {}
  for i, packed in ipairs(fetch(keys[SETTLED], releases)) do
    -- An id twice in one list is released once.
    if packed and redis.call('HDEL', keys[SETTLED], releases[i]) == 1 then
      local cost = cmsgpack.unpack(packed)
      released = add(released, cost)
      gone[#gone + 1] = releases[i]
    end
  end
  if #gone > 0 then
    in_parts('ZREM', keys[UNCONFIRMED], gone, 1)
    local settled = amount_of(redis.call('HGET', keys[CREDIT], 'settled'))
    redis.call('HSET', keys[CREDIT], 'settled', text(sub(settled, released)))
  end
end

-- rule 28: newer budgets
-- `budgets`: [[key id or '', version, nanos or false], …]. Each is applied only if it is newer than the stored one,
-- so order and repeats do not matter.
local function take_budgets(keys, budgets)
  for _, one in ipairs(budgets) do
    local key_id, version, nanos = one[1], one[2], one[3]
    local of, field = keys[KEYS_OF], key_id .. BUDGET
    if key_id == '' then
      of, field = keys[CREDIT], 'budget'
    end
    local _, known = unpack_budget(redis.call('HGET', of, field))
    if known < version then
      redis.call('HSET', of, field, cmsgpack.pack(nanos, version))
    end
  end
end

-- args: [[version, balance, suspended, [ids], [budgets]], …] as JSON. Returns whether the tenant's credit was
-- requested since the store was emptied.
local function apply_balance_updates(keys, args)
  for _, a in ipairs(cjson.decode(args[1])) do
    take_balance(keys, a[1], a[2], a[3], a[4])
    take_budgets(keys, a[5])
  end
  return redis.call('HEXISTS', keys[CREDIT], 'restored')
end

local function take_spent(of, month, spent)
  -- Both sums include what was settled here and has reached metering. The larger one is nearer to the truth.
  of.spent = month > of.month and spent or most(of.spent, spent)
  of.month = month
end

-- Begins the store epoch of a tenant whose books are asked. Returns it, for `restore`.
local function begin_restore(keys)
  begin_store_epoch(keys, load_tenant(keys))
  return redis.call('HGET', keys[CREDIT], EPOCH)
end

-- Restores a tenant that the store lost or never had. args: now_ms or '', version, balance, suspended, ids and [[month,
-- spent by the tenant in it, [[key id, spent by the key], …]], …] and the budgets, as one JSON array, and the store
-- epoch in which the books were asked. The current month by this clock counts: the caller's may differ. Returns 1, or 0
-- in another epoch: the store was emptied since, and may have lost a newer balance than that of the books then.
local function restore(keys, args)
  if redis.call('HGET', keys[CREDIT], EPOCH) ~= args[3] then
    return 0
  end
  local a = cjson.decode(args[2])
  take_balance(keys, a[1], a[2], a[3], a[4])
  take_budgets(keys, a[6])
  local month = month_of(now_us(args[1]))
  local t, loaded = load_tenant(keys), {}
  for _, spent in ipairs(a[5]) do
    if spent[1] == month then
      take_spent(t, month, spent[2])
      for _, one in ipairs(spent[3]) do
        local k = load_key(keys, loaded, one[1])
        take_spent(k, month, one[2])
        k.changed = true
      end
    end
  end
  save_keys(keys, loaded)
  save_tenant(keys, t, 'month', 'spent')
  redis.call('HSET', keys[CREDIT], 'restored', '1')
  return 1
end
