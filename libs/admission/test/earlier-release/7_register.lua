-- Names are the library's own, so that several versions live side by side. What ends holds or lets them go must work in a full memory too.
local function register(name, callback, flags)
  redis.register_function({ function_name = LIBRARY .. '_' .. name, callback = callback, flags = flags })
end
register('admit', admit, {})
register('extend', extend, {})
register('progress', progress, { 'allow-oom' })
register('settle', settle, { 'allow-oom' })
register('void', void, { 'allow-oom' })
register('withdraw', withdraw, {})
register('sweep', sweep, { 'allow-oom' })
-- Under its present name, because the test calls it through the present store.
register('apply_balance_updates', apply_news, { 'allow-oom' })
register('restore', restore, { 'allow-oom' })
register('snapshot', snapshot, { 'no-writes' })
register('holds', holds, { 'no-writes' })
register('forget_idle', forget_idle, { 'allow-oom' })
