-- The script of reservations in Redis as it was before algorithms had any, for a test of both on one store.
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

local before, after = ARGV[1], ARGV[2]
local record = pcall('GET', KEYS[1])
if type(record) == 'table' then return record end
if (record or '') ~= before then return { 'changed', record or '' } end
local change = cjson.decode(ARGV[3])
local now, lifetime, expires, isDenied, most, ending = change[1], change[2], change[3], change[4], change[5], change[6]
local opens, holds = expires ~= '0', false
local steps = { unpack(change, 7) }
for i = 1, #steps do
  local member = steps[i][6]
  local counter, list = KEYS[2 * i], KEYS[2 * i + 1]
  if member ~= '' then holds = true end
  if opens then
    local ended = pcall('ZRANGEBYSCORE', list, '-inf', now, 'LIMIT', 0, ending)
    if ended.err then return ended end
    if #ended > 0 then
      local hits = 0
      for _, each in ipairs(ended) do hits = hits + (tonumber(string.match(each, '^c(%d+)')) or 0) end
      local rest = step(counter, -math.min(hits, LARGEST))
      if type(rest) == 'table' then return rest end
      pcall('ZREMRANGEBYRANK', list, 0, #ended - 1)
    end
    if member ~= '' and pcall('ZCOUNT', list, '(' .. now, '+inf') >= most then return { 'full' } end
  elseif member ~= '' then
    local score = pcall('ZSCORE', list, member)
    if type(score) == 'table' then return score end
    if not score then return { 'expired' } end
  end
end
local counts, sums, together, over = {}, {}, 0, 0
local isOver = isDenied == 1
for i = 1, #steps do
  local hits, limit, denies = steps[i][1], steps[i][4], steps[i][5]
  local counter = KEYS[2 * i]
  local count = sums[counter] or step(counter, 0)
  if type(count) == 'table' then return count end
  local sum = math.min(LARGEST, count + hits)
  if hits < 0 then sum = math.max(0, sum) end
  sums[counter], counts[i] = sum, { count, sum }
  if denies == 'together' then together = together + 1 end
  if sum > limit then
    if denies == 'alone' then isOver = true elseif denies == 'together' then over = over + 1 end
  end
end
isOver = opens and (isOver or (together > 0 and over == together))
local reply, texts = { isOver and 'denied' or 'done' }, {}
for i = 1, #steps do
  local limit = steps[i][4]
  local count, sum = unpack(counts[i])
  local added = sum - count
  if isOver then
    added = 0
    if sum <= limit then sum = count end
  end
  sum = math.max(0, sum)
  reply[2 * i], reply[2 * i + 1] = sum, added
  texts[i] = string.format('%.0f:%.0f', sum, added)
end
if isOver then return reply end
local written = {}
if after ~= '' then
  if #steps > 0 and (holds or not opens) then after = after .. '\n' .. table.concat(texts, ',') end
  written = pcall('SET', KEYS[1], after, 'PX', lifetime)
elseif record then
  written = pcall('DEL', KEYS[1])
end
if type(written) == 'table' and written.err then return written end
for i = 1, #steps do
  local hits, expiry, left, limit, denies, member, listLifetime = steps[i][1], steps[i][2], steps[i][3], steps[i][4], steps[i][5], steps[i][6], steps[i][7]
  local counter, list = KEYS[2 * i], KEYS[2 * i + 1]
  if hits ~= 0 then step(counter, hits, hits, expiry, left) end
  if member ~= '' then
    if opens then
      pcall('ZADD', list, expires, string.format('%s%.0f%s', string.sub(member, 1, 1), reply[2 * i + 1], string.sub(member, 2)))
      expire(list, listLifetime, listLifetime)
    else pcall('ZREM', list, member) end
  end
end
return reply
