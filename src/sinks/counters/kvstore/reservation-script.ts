import { CLOCK, COMMON, Fields, lua, script } from './script';

/** The last argument: a list of these, then for each step a list of {@link STEP}. */
export const CHANGE = new Fields(
  /** Texts: the time as in {@link CLOCK}, and the lifetime of the record in milliseconds. */
  'now',
  'lifetime',
  /** After how many milliseconds the reservation expires that is opened; 0: none is opened. */
  'ttl',
  /** 1: it is denied in any case. */
  'isDenied',
  /** Most members of a list, and most of them that end in each list before one is entered. */
  'most',
  'ending',
);

export const STEP = new Fields(
  'hits',
  /** In seconds, for a counter that has no expiry, or one in less than `left` seconds. */
  'expiry',
  'left',
  'limit',
  /** `alone`, `together` or `never`: what denies when this step is over its limit. */
  'denies',
  /** Its member of the list; empty: none. */
  'member',
  /** Of the list, in seconds. */
  'listLifetime',
);

/** In seconds. What is due waits for an instance to start, also after an outage of all for a day. */
export const DUE_LIFETIME = 25 * 3_600;

/**
 * Changes a reservation: its record, its counters, and the lists of the open reservations of these, which are sorted
 * sets by the time at which they expire, in Unix milliseconds. It is a script of its own because its arguments and
 * replies hold texts, and each call has one change: it has nothing in common with counting but how a counter is read
 * and changed.
 *
 * - KEYS: the record, then for each step its counter and the list of the counter; then the set of `DueReservations`,
 *   unless it is in another place.
 * - ARGV: the record as it must be, empty for none; the new one, empty for none; and JSON: {@link CHANGE}.
 * - Result: a list with `done` or `denied` and for each step a count and by how much it was changed, `full`,
 *   `expired`, or `changed` and the record; or the error of a key.
 * - Atomic: what is reserved must not be counted by others in between, and a reservation ends once.
 *
 * A member begins with `c` or `s`, and is entered with what was added to the counter after that. Members that have
 * expired are removed before a reservation is opened; what those with `c` have added is subtracted. If one that is
 * ended has been removed so, its step adds all that was used. The record is written before the counters: a server
 * without memory rejects the first write of a script, and none after it. That of a reservation without members gets no
 * counts.
 */
export const RESERVATION = script(lua`${COMMON}${CLOCK}
local function heldBy(member) return tonumber(string.match(member, '^c(%d+)')) or 0 end
local before, after = ARGV[1], ARGV[2]
local record = pcall('GET', KEYS[1])
if type(record) == 'table' then return record end
if (record or '') ~= before then return { 'changed', record or '' } end
local change = cjson.decode(ARGV[3])
${CHANGE.read('change', 1)}
local opens, holds = ttl > 0, false
now = math.floor(clock(now) / 1000)
local steps = { unpack(change, ${CHANGE.size + 1}) }
local due = KEYS[2 * #steps + 2]
for i = 1, #steps do
  ${STEP.read('steps[i]', 1, 'member')}
  local counter, list = KEYS[2 * i], KEYS[2 * i + 1]
  if member ~= '' then holds = true end
  if opens then
    local ended = pcall('ZRANGEBYSCORE', list, '-inf', now, 'LIMIT', 0, ending)
    if ended.err then return ended end
    if #ended > 0 then
      local hits = 0
      for _, each in ipairs(ended) do hits = hits + heldBy(each) end
      local rest = step(counter, -math.min(hits, LARGEST))
      if type(rest) == 'table' then return rest end
      pcall('ZREMRANGEBYRANK', list, 0, #ended - 1)
    end
    if member ~= '' and pcall('ZCOUNT', list, '(' .. now, '+inf') >= most then return { 'full' } end
  elseif member ~= '' then
    local score = pcall('ZSCORE', list, member)
    if type(score) == 'table' then return score end
    if not score and not record then return { 'expired' } end
    if not score then steps[i][1] = steps[i][1] + heldBy(member) end
  end
end
local counts, sums, together, over = {}, {}, 0, 0
local isOver = isDenied == 1
for i = 1, #steps do
  ${STEP.read('steps[i]', 1, 'hits', 'limit', 'denies')}
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
  ${STEP.read('steps[i]', 1, 'limit')}
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
  ${STEP.read('steps[i]', 1)}
  local counter, list = KEYS[2 * i], KEYS[2 * i + 1]
  if hits ~= 0 then step(counter, hits, hits, expiry, left) end
  if member ~= '' then
    local dueMember = 'm' .. counter .. '\n' .. string.gsub(member, '^c%d*', 'c')
    local isDue = due and string.sub(member, 1, 1) == 'c'
    if opens then
      pcall('ZADD', list, now + ttl, string.format('%s%.0f%s', string.sub(member, 1, 1), reply[2 * i + 1], string.sub(member, 2)))
      expire(list, listLifetime, listLifetime)
      if isDue then
        pcall('ZADD', due, now + ttl, dueMember)
        pcall('EXPIRE', due, ${DUE_LIFETIME})
      end
    else
      pcall('ZREM', list, member)
      if isDue then pcall('ZREM', due, dueMember) end
    end
  end
end
return reply
`);
