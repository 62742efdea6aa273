-- What `admit` would return for a request of one output token that costs a nano, or nothing if it is not paid: the same
-- rules in the same order. Takes and writes nothing.
local ONE_NANO = 1

-- Code and scope, or nothing.
local function money_in_the_way(a, t, k, month)
  -- rule 3: spendable and unspent
  local spendable = sub(t.balance, t.settled)
  local key_left = unspent(month, k, a[8])
  local tenant_left = unspent(month, t, a[9])
  -- rule 6: budget reached
  if key_left and less(key_left, ONE_NANO) then
    return 'budget_reached', 'key'
  end
  if tenant_left and less(tenant_left, ONE_NANO) then
    return 'budget_reached', 'tenant'
  end
  -- rule 7: credit exhausted
  if less(spendable, ONE_NANO) then
    return 'credit_exhausted', 'tenant'
  end
  -- rule 8: clamped, or held by others
  if key_left and less(sub(key_left, k.pending), ONE_NANO) then
    return 'credit_held', 'key'
  end
  if less(sub(spendable, t.pending), ONE_NANO) or (tenant_left and less(sub(tenant_left, t.pending), ONE_NANO)) then
    return 'credit_held', 'tenant'
  end
end

-- rule 15: the least request
-- args: now_ms or '', '1' to refuse tenants whose credit was not requested (as in `admit`), and as JSON for each look:
-- key id, the key's requests and tokens a minute and concurrency, the tenant's, their default budgets (false: none),
-- whether it is paid. Returns { 'unknown' }, or 11 values for each look: code (false: it would be admitted), scope,
-- retry_ms, and the state of the two buckets of the key and of the tenant.
local function look(keys, args)
  local now = now_us(args[1])
  local t = load_tenant(keys)
  if args[2] == '1' and not t.restored then
    return { 'unknown' }
  end
  local full, month, loaded, out = now + MINUTE_US, month_of(now), {}, {}
  -- rule 1: a clock that was ahead
  read_buckets(t, now)
  for _, a in ipairs(cjson.decode(args[3])) do
    local k = load_key(keys, loaded, a[1])
    read_buckets(k, now)
    -- rule 9: bucket arithmetic
    local key_requests, key_tokens = k.requests_us + bucket_us(1, a[2]), k.tokens_us + bucket_us(1, a[3])
    local tenant_requests, tenant_tokens = t.requests_us + bucket_us(1, a[5]), t.tokens_us + bucket_us(1, a[6])
    local code, scope, retry_ms = limit_in_the_way(
      t, k, full, a[4], a[7], key_requests, tenant_requests, key_tokens, tenant_tokens)
    -- rule 4: requests that cost nothing
    if not code and a[10] then
      code, scope = money_in_the_way(a, t, k, month)
      retry_ms = code == 'credit_held' and passing_ms(t.hold_mean_ms, scope == 'key' and k.in_flight or t.in_flight)
    end
    local n = #out
    out[n + 1], out[n + 2], out[n + 3] = code or false, scope or false, retry_ms or false
    add_buckets(out, now, k, a[2], a[3])
    add_buckets(out, now, t, a[5], a[6])
  end
  return out
end
