-- Admission, request by request in the order given. The rules have the numbers of the table in
-- libs/admission/README.md.
local SHORTEST_WAIT_MS, LONGEST_WAIT_MS = 1000, 60000

-- rule 14: waiting for running requests
-- When the next hold is expected to end: the mean length divided by the number of running holds, between a second and a
-- minute.
local function passing_ms(mean_ms, in_flight)
  return math.min(LONGEST_WAIT_MS, math.max(SHORTEST_WAIT_MS, math.floor(mean_ms / math.max(1, in_flight))))
end

-- The most output tokens, up to `want`, that `nanos` pays for in addition to the prompt; −1 if it does not even pay
-- for the prompt.
local function afford(nanos, r)
  local left = sub(mul(nanos, MILLION), r.prompt_femtos)
  if less(left, 0) then
    return -1
  end
  return times(left, r.output_femtos, r.want_tokens)
end

-- What credit and budgets grant: tokens and nanos; or nil, the refusal and its scope.
local function grant(r, t, k, month)
  -- rule 3: spendable and unspent
  local spendable = sub(t.balance, t.settled)
  local credit = sub(spendable, t.pending)
  local key_left = unspent(month, k, r.key_budget)
  local tenant_left = unspent(month, t, r.tenant_budget)
  local available = credit
  if key_left then
    available = least(available, sub(key_left, k.pending))
  end
  if tenant_left then
    available = least(available, sub(tenant_left, t.pending))
  end
  -- rule 4: requests that cost nothing
  -- They need no credit and no budget, whatever is owed or spent.
  if r.want_nanos == 0 or not less(available, r.want_nanos) then
    return r.want_tokens, r.want_nanos
  end
  -- rule 5: a bound that is not exact
  if not r.bound_is_exact then
    return nil, 'bound', 'tenant'
  end
  -- rule 6: budget reached
  if key_left and less(key_left, r.least_nanos) then
    return nil, 'budget_reached', 'key'
  end
  if tenant_left and less(tenant_left, r.least_nanos) then
    return nil, 'budget_reached', 'tenant'
  end
  -- rule 7: credit exhausted
  if less(spendable, r.least_nanos) then
    return nil, 'credit_exhausted', 'tenant'
  end
  -- rule 8: clamped, or held by others
  local spendable_at_most = spendable
  if key_left then
    spendable_at_most = least(spendable_at_most, key_left)
  end
  if tenant_left then
    spendable_at_most = least(spendable_at_most, tenant_left)
  end
  local target = afford(spendable_at_most, r)
  local least_tokens = math.min(r.min_tokens, target)
  local tokens = math.min(target, afford(available, r))
  if tokens < least_tokens then
    local by_key = key_left and afford(sub(key_left, k.pending), r) < least_tokens
    return nil, 'credit_held', by_key and 'key' or 'tenant'
  end
  return tokens, ceil_million(add(r.prompt_femtos, mul(tokens, r.output_femtos)))
end

local function read_request(a, draft)
  return {
    id = a[1], key_id = a[2], key_requests = a[3], key_tokens = a[4], key_concurrency = a[5],
    tenant_requests = a[6], tenant_tokens = a[7], tenant_concurrency = a[8], key_budget = a[9], tenant_budget = a[10],
    prompt_tokens = a[11], prompt_femtos = a[12], output_femtos = a[13],
    want_tokens = a[14], min_tokens = a[15], bound_is_exact = a[16],
    want_nanos = a[17], least_nanos = a[18], claim = a[19], fingerprint = a[20], draft = draft,
  }
end

-- Which limit refuses a request whose buckets would be full at these times: code, scope, and when to retry. Or nothing.
local function limit_in_the_way(
  t, k, full, key_concurrency, tenant_concurrency,
  key_requests_us, tenant_requests_us, key_tokens_us, tenant_tokens_us)
  -- rule 10: tenant suspended
  if t.suspended then
    return 'tenant_suspended', 'tenant', false
  end
  local last_us = math.max(key_requests_us, tenant_requests_us, key_tokens_us, tenant_tokens_us)
  if last_us > full then
    -- The same request passes once all four buckets have room.
    local retry_ms = math.floor((last_us - full + 999) / 1000)
    -- rule 11: request rate
    if math.max(key_requests_us, tenant_requests_us) > full then
      return 'requests', key_requests_us > full and 'key' or 'tenant', retry_ms
    end
    -- rule 12: token rate
    return 'tokens', key_tokens_us > full and 'key' or 'tenant', retry_ms
  end
  -- rule 13: concurrency
  if k.in_flight >= key_concurrency then
    return 'concurrency', 'key', passing_ms(t.hold_mean_ms, k.in_flight)
  end
  if t.in_flight >= tenant_concurrency then
    return 'concurrency', 'tenant', passing_ms(t.hold_mean_ms, t.in_flight)
  end
end

local function new_hold(r, nanos, tokens, counted, deadline_ms, now_ms)
  return {
    key_id = r.key_id, nanos = nanos, output_tokens = tokens, tokens = counted,
    key_tokens_per_minute = r.key_tokens,
    tenant_tokens_per_minute = r.tenant_tokens, key_budget = r.key_budget, tenant_budget = r.tenant_budget,
    deadline_ms = deadline_ms, progressed_ms = now_ms, delivered = false, draft = r.draft,
    admitted_ms = now_ms, claim = r.claim,
  }
end

-- Decides on a request that was not admitted before: code, scope, when to retry, nanos and tokens. If it is admitted,
-- adds it to the sums and buckets of the tenant and the key, and also returns the tokens that the buckets count.
local function decide(r, t, k, full, month)
  local tokens, nanos, refused_by = grant(r, t, k, month)
  local refusal = not tokens and nanos
  nanos = tokens and nanos or false
  -- rule 9: bucket arithmetic
  local counted = r.prompt_tokens + (tokens or r.want_tokens)
  local key_requests_us = k.requests_us + bucket_us(1, r.key_requests)
  local tenant_requests_us = t.requests_us + bucket_us(1, r.tenant_requests)
  local key_tokens_us = k.tokens_us + bucket_us(counted, r.key_tokens)
  local tenant_tokens_us = t.tokens_us + bucket_us(counted, r.tenant_tokens)
  local code, scope, retry_ms = limit_in_the_way(
    t, k, full, r.key_concurrency, r.tenant_concurrency,
    key_requests_us, tenant_requests_us, key_tokens_us, tenant_tokens_us)
  if code then
    return code, scope, retry_ms, nanos, tokens
  end
  if refusal then
    local is_held = refusal == 'credit_held'
    return refusal, refused_by,
      is_held and passing_ms(t.hold_mean_ms, refused_by == 'key' and k.in_flight or t.in_flight), nanos, tokens
  end
  t.pending, t.in_flight = add(t.pending, nanos), t.in_flight + 1
  t.requests_us, t.tokens_us = tenant_requests_us, tenant_tokens_us
  k.pending, k.in_flight = add(k.pending, nanos), k.in_flight + 1
  k.requests_us, k.tokens_us = key_requests_us, key_tokens_us
  k.changed = true
  return 'held', false, false, nanos, tokens, counted
end

-- Writes what a call has admitted, or read by a clock that was ahead. `writes`: the packed holds by id.
local function save_admitted(keys, t, loaded, writes, deadline_ms, now_ms, t_moved, k_moved)
  if #writes > 0 then
    in_parts('HSET', keys[PENDING], writes, 2)
    save_keys(keys, loaded)
    local is_first = not t.deadline_ms or deadline_ms < t.deadline_ms
    t.deadline_ms = is_first and deadline_ms or t.deadline_ms
    t.progressed_ms = math.max(t.progressed_ms, now_ms)
    save_tenant(keys, t, 'pending', 'in_flight', 'requests_us', 'tokens_us', 'written_us', 'progressed_ms',
      is_first and 'deadline_ms' or nil)
  elseif t_moved or k_moved then
    save_keys(keys, loaded)
    if t_moved then
      save_tenant(keys, t, 'requests_us', 'tokens_us', 'written_us')
    end
  elseif not t.exists then
    save_tenant(keys, t)
  end
end

-- args: now_ms or '', lease_ms, '1' to refuse tenants whose credit was not requested since the store was emptied, the
-- requests as JSON, their drafts, and if one has a claim: keep_ms and the most claims. A balance update alone does not
-- make a tenant known: it may be an old one, redelivered. Returns { 'unknown' }, or whether the tenant was new and the
-- store epoch of the holds, then 13 values for each request: code, scope, retry_ms, nanos, tokens, and the state of the
-- two buckets of the key and of the tenant. code: 'held', a refusal of admission-store.ts, or 'id_used'.
local function admit(keys, args)
  local now = now_us(args[1])
  local now_ms = math.floor(now / 1000)
  local deadline_ms = now_ms + tonumber(args[2])
  local t = load_tenant(keys)
  if args[3] == '1' and not t.restored then
    return { 'unknown' }
  end
  local list = cjson.decode(args[4])
  local full = now + MINUTE_US
  local month = month_of(now)
  local ids = {}
  for i, a in ipairs(list) do
    ids[i] = a[1]
  end
  local held, ended = fetch(keys[PENDING], ids), fetch(keys[SETTLED], ids)
  local fresh, writes, loaded = {}, {}, {}
  -- The claims of the holds of this call, in order and by id.
  local taken, is_taken = {}, {}
  local keep_ms, max_claims = tonumber(args[5 + #list]), tonumber(args[6 + #list])
  begin_store_epoch(keys, t)
  local out = { t.exists and 0 or 1, '' }
  local t_moved, k_moved = read_buckets(t, now), false

  for i, a in ipairs(list) do
    local r = read_request(a, args[4 + i])
    local k = load_key(keys, loaded, r.key_id)
    if read_buckets(k, now) then
      k_moved, k.changed = true, true
    end
    local code, scope, retry_ms, nanos, tokens, counted = nil, false, false, false, false, nil

    -- rule 2: a repeated admission
    local h = fresh[r.id] or (held[i] and unpack_hold(held[i]))
    if h or ended[i] then
      code = h and h.key_id == r.key_id and 'held' or 'id_used'
      nanos, tokens = h and h.nanos, h and h.output_tokens
    -- rule 31: a claimed key
    -- Before all limits: a repeat of a request that runs or was settled is no request of its own.
    elseif r.claim and (is_taken[r.claim] or standing_claim(keys, r.claim, now_ms, keep_ms)) then
      code, scope = 'claimed', 'key'
    else
      code, scope, retry_ms, nanos, tokens, counted = decide(r, t, k, full, month)
    end
    if counted then
      h = new_hold(r, nanos, tokens, counted, deadline_ms, now_ms)
      fresh[r.id] = h
      writes[#writes + 1] = r.id
      writes[#writes + 1] = pack_hold(h)
      if r.claim then
        is_taken[r.claim] = true
        taken[#taken + 1] = { r.claim, r.fingerprint, r.id }
      end
    end
    local n = #out
    out[n + 1], out[n + 2], out[n + 3], out[n + 4], out[n + 5] = code, scope, retry_ms, nanos, tokens or false
    add_buckets(out, now, k, r.key_requests, r.key_tokens)
    add_buckets(out, now, t, r.tenant_requests, r.tenant_tokens)
  end

  save_admitted(keys, t, loaded, writes, deadline_ms, now_ms, t_moved, k_moved)
  out[2] = epoch_of_holds(keys, t, #writes / 2)
  if #taken > 0 then
    take_claims(keys, taken, now_ms, keep_ms, max_claims)
  end
  return out
end
