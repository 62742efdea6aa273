-- Ends the sessions on a gateway that no longer answers its checks, so that no client waits for it in vain.
--
-- HAProxy can do this by itself (`on-marked-down shutdown-sessions`). But it takes an address that DNS has just named
-- for up until the first check fails, and would then end the requests that are still connecting to it. Those go on to
-- another gateway, because nothing was sent yet. So this ends sessions only where a check failed after others were
-- answered at the same address.

local function watch(server)
  local answered, failed = false, false
  server:event_sub({ "SERVER_CHECK", "SERVER_DOWN" }, function(event, data)
    if event == "SERVER_CHECK" then
      failed = data.check.result == "FAILED"
      answered = answered or not failed
      return
    end
    -- A gateway that DNS no longer names is down without a failed check. Its sessions continue.
    local ends = answered and failed and data.reference
    answered, failed = false, false
    if ends then
      core.log(core.notice, "Ending the sessions on " .. data.proxy_name .. "/" .. data.name .. ".")
      data.reference:shut_sess()
    end
  end)
end

core.register_init(function()
  for _, backend in pairs(core.backends) do
    for _, server in pairs(backend.servers) do watch(server) end
  end
end)
