-- The script that counts in Redis as it was before limits could be postpaid, for a test of both on one store.
local pcall, type = redis.pcall, type
local LARGEST = 9007199254740991
local function expire(key, expiry, left)
  local ttl = pcall('TTL', key)
  if type(ttl) == 'number' and ttl < left then pcall('EXPIRE', key, expiry) end
end
local function step(key, hits, text, expiry, left, created)
  if hits > 0 then
    local count = pcall('INCRBY', key, text)
    if type(count) == 'table' then
      if not string.find(count.err, 'would overflow') then return count end
      count = LARGEST
    elseif count > LARGEST then
      local before = pcall('DECRBY', key, text)
      if type(before) == 'number' and before < LARGEST then pcall('INCRBY', key, LARGEST - before) end
      count = LARGEST
    end
    if not created or count == created then expire(key, expiry, left) end
    return count
  end
  local stored = pcall('GET', key)
  if not stored then return 0 end
  if type(stored) == 'table' then return stored end
  if not string.find(stored, '^-?%d+$') then return redis.error_reply('ERR value is not an integer') end
  local count = math.min(tonumber(stored), LARGEST)
  if hits == 0 then return count end
  local taken = math.min(-hits, count)
  if taken == 0 then return 0 end
  local rest = pcall('DECRBY', key, taken)
  if type(rest) == 'number' then return math.min(rest, LARGEST) end
  return rest
end

local list, KEYS = cjson.decode(ARGV[1]), KEYS
local jitter, random = list[1], list[2]
local limits, time, clock
local function grantOf(wants, left)
  local granted = math.min(wants, math.floor(left / 16))
  return granted < 2 and 0 or granted
end
local results, count, used = {}, 0, 0
local at = 3
while list[at] do
  local times, kind = list[at + 0], list[at + 1]
  at = at + 2
  if kind <= 2 then
    local hits, expiry, left = list[at + 0], list[at + 1], list[at + 2]
    at = at + 3
    local change = tonumber(hits)
    local created = kind == 2 and change
    for i = used + 1, used + times do
      count = count + 1
      results[count] = step(KEYS[i], change, hits, expiry + (random + i * 7919) % jitter, left, created)
    end
    used = used + times
  elseif kind <= 4 then
    local from, isAnyOver, over, lowered = at, kind == 4, {}, {}
    for i = used + 1, used + times do
      local hits, limit = list[from + 0], list[from + 3]
      from = from + 4
      local key = KEYS[i]
      local stored = lowered[key] or step(key, 0)
      if type(stored) == 'number' then
        if hits < 0 then
          lowered[key] = math.max(0, stored + hits)
        elseif stored + hits > limit then
          isAnyOver, over[i] = true, true
        end
      end
    end
    for i = used + 1, used + times do
      local hits, expiry, left = list[at + 0], list[at + 1], list[at + 2]
      at = at + 4
      if isAnyOver and not over[i] then hits = math.min(0, hits) end
      count = count + 1
      results[count] = step(KEYS[i], hits, hits, expiry, left)
    end
    used = used + times
  elseif kind == 7 then
    local hits, expiry, left = list[at + 0], list[at + 1], list[at + 2]
    at = at + 3
    local limit, wants = list[at + 0], list[at + 1]
    at = at + 2
    used = used + 1
    local stored, granted = step(KEYS[used], tonumber(hits), hits, expiry, left), 0
    if type(stored) == 'number' then
      granted = grantOf(wants, limit - stored)
      if granted ~= 0 and type(step(KEYS[used], granted, granted, expiry, left)) == 'table' then granted = 0 end
    end
    results[count + 1], results[count + 2] = stored, granted
    count = count + 2
  else
    local size, calls = list[at + 0], list[at + 1]
    at = at + 2
    local lent = at
    if kind == 6 then at = at + 4 end
    local HITS, NUMBERS = 4294967296, 2097151
    if not clock then
      limits, time = cjson.decode(ARGV[2]), tonumber(ARGV[3])
      if not time then
        local now = redis.call('TIME')
        time = now[1] * 1000000 + now[2]
      end
      clock = math.floor(time / 1000)
    end
    local keys, previousKeys, bases, added, kept, isCut = {}, {}, {}, {}, {}, {}
    local states, others, nextStates, nextOthers = {}, {}, {}, {}
    for _ = 1, times do
      local from, first, err, isDone, isWritten = at, count, nil, true, true
      for l = 1, size do
        local number, total, text, isKnown = list[from + 0], list[from + 1], list[from + 2], list[from + 3]
        from = from + 6
        local limit = limits[number]
        local algorithm, most = limit[1], limit[2]
        used = used + 1
        local key, base, other, weight = KEYS[used], 0, 0, 0
        if algorithm == 'token_bucket' then
          base = time
        elseif algorithm == 'sliding_window' then
          local window = limit[5]
          local index = math.floor(clock / window)
          base = (index % NUMBERS + 1) * HITS
          key, previousKeys[l] = KEYS[used + index % 2], KEYS[used + 1 - index % 2]
          used = used + 1
          local previous = step(previousKeys[l], 0)
          if type(previous) == 'table' then
            err = previous
          else
            other = previous % HITS
            if previous - other ~= ((index - 1) % NUMBERS + 1) * HITS then other = 0 end
            weight = math.ceil(other * (window - clock % window) / window)
          end
        end
        local value, isAdded, isKept = total > 0 and isDone and pcall('INCRBY', key, text), true, true
        if type(value) == 'number' then
          value = value - total
        else
          value, isAdded = pcall('GET', key) or '0', false
          local number, part, of
          if type(value) == 'table' then
            err = value
          else
            number, part, of = string.match(value, '^(-?%d+):?(%d*)/?(%d*)$')
          end
          if not number then
            err, value = err or redis.error_reply('ERR value is not an integer'), base
          else
            local parts = limit[4]
            value, isKept = tonumber(number), part == '' and parts == 1
            if tonumber(of) == parts then other = tonumber(part) elseif part ~= '' then value = value + 1 end
          end
        end
        local state = value - base
        if algorithm == 'token_bucket' then
          local mostPart = limit[3]
          isCut[l] = state > most or (state == most and other > mostPart)
          if state < 0 then
            if value == 0 then
              isKept = false
            elseif isAdded then
              pcall('INCRBY', key, -state)
              value = base
            end
            state, other = 0, 0
          elseif isCut[l] then
            state, other = most, mostPart
          end
        elseif algorithm == 'sliding_window' and (state < 0 or state >= HITS) then
          state, isKept = 0, false
        end
        isDone = isDone and isAdded and state + total + weight <= most
        isWritten = isWritten and isKept and isKnown and value ~= 0
        results[count + 1], results[count + 2] = state, other
        count = count + 2
        if err or size > 1 or not (isDone and isWritten) then
          keys[l], bases[l], states[l], others[l] = key, base, state, other
          added[l], kept[l] = isAdded and value, isKept and value
        end
      end
      if err or not (isDone and isWritten) then
        from = at
        for l = 1, size do
          local total, text = list[from + 1], list[from + 2]
          from = from + 6
          if isDone and not err then
            states[l] = states[l] + total
          elseif added[l] then
            if added[l] == 0 then pcall('DEL', keys[l]) else pcall('DECRBY', keys[l], text) end
          end
        end
        local isOver = false
        if kind == 6 then
          local onlyIn = list[lent + 3]
          if onlyIn ~= -1 and previousKeys[1] then
            isOver = bases[1] ~= (onlyIn % NUMBERS + 1) * HITS
          elseif onlyIn ~= -1 then
            isOver = time > onlyIn
          end
        end
        for c = 1, (err or isDone or isOver) and 0 or #calls do
          for _ = 1, calls[c] do
            local isAllowed = true
            from = at
            for l = 1, size do
              local number, hits, hitParts = list[from + 0], list[from + 4], list[from + 5]
              from = from + 6
              local limit = limits[number]
              local algorithm, most = limit[1], limit[2]
              local hits = hits[c]
              local state, other = states[l] + hits, others[l]
              if algorithm == 'token_bucket' then
                local mostPart, parts = limit[3], limit[4]
                other = other + hitParts[c]
                if other >= parts then state, other = state + 1, other - parts end
                if state < 0 then state, other = 0, 0 end
                if state > most or (state == most and other > mostPart) then isAllowed = false end
              else
                local window = limit[5]
                other, state = math.max(0, other + math.min(0, state)), math.max(0, state)
                local weight = math.ceil(other * (window - clock % window) / window)
                if hits > 0 and state + weight > most then isAllowed = false end
              end
              nextStates[l], nextOthers[l] = state, other
            end
            if not isAllowed then break end
            states, nextStates, others, nextOthers = nextStates, states, nextOthers, others
          end
        end
        if kind == 6 then
          local wants, during, perHit = list[lent + 0], list[lent + 1], list[lent + 2]
          local number = list[at + 0]
          local algorithm, most, window = limits[number][1], limits[number][2], limits[number][5]
          count = count + 1
          if not err then
            local state, other, granted = states[1], others[1]
            if algorithm == 'token_bucket' then
              if other > 0 then state = state + 1 end
              local full = math.max(state, during)
              wants = math.min(wants, math.floor((most - 2 - full) / perHit))
              granted = grantOf(wants, math.floor((most - 2 - state) / perHit))
              if granted ~= 0 then states[1], others[1] = full + math.ceil(granted * perHit) + 1, 0 end
            else
              granted = grantOf(wants, most - state - math.ceil(other * (window - clock % window) / window))
              states[1] = state + granted
            end
            results[count] = granted
          end
        end
        from = at
        for l = 1, err and 0 or size do
          local number, total, isKnown = list[from + 0], list[from + 1], list[from + 3]
          from = from + 6
          local limit, key, reply = limits[number], keys[l], nil
          local turned = others[l] - results[first + 2 * l]
          if previousKeys[l] and turned ~= 0 then
            reply = pcall('INCRBY', previousKeys[l], turned)
            turned = 0
          end
          local isChanged = isCut[l] or turned ~= 0 or states[l] ~= results[first + 2 * l - 1]
          local parts, expiry, left = limit[4], limit[6], limit[7]
          if isChanged and not kept[l] then
            local value = bases[l] + states[l]
            if not previousKeys[l] and others[l] > 0 then value = string.format('%.0f:%.0f/%.0f', value, others[l], parts) end
            reply = pcall('SET', key, value, 'EX', expiry)
          else
            if isChanged and not isDone then reply = pcall('INCRBY', key, bases[l] + states[l] - kept[l]) end
            if not isKnown or kept[l] == 0 then expire(key, expiry, left) end
          end
          if type(reply) == 'table' and reply.err then err = err or reply end
        end
        for i = first + 1, err and count or first, 2 do results[i] = err end
      end
    end
    at = at + 6 * size
  end
end
if clock then results[count + 1] = time end
return results
