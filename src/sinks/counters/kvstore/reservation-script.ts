import { ALGORITHMS } from './reservation-algorithms';
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
  /** The member of the step in the list of its counter; empty: none. */
  'member',
  /** The lifetime of that list, in seconds. */
  'listLifetime',
  /** The algorithm whose state is in the counter; empty: none. And its {@link LIMIT}, 0 where it is only swept. */
  'kind',
  'decider',
  /** What the hits take from the state, or what negative ones give back to it, positive. */
  'whole',
  'part',
  /** What all hits take that were used, if the member has expired. */
  'lateWhole',
  'latePart',
  /** What one hit takes. */
  'perHit',
);

/** In seconds. What is due waits for an instance to start, also after an outage of all for a day. */
export const DUE_LIFETIME = 25 * 3_600;

/**
 * Changes a reservation: its record, its counters, and the lists of the open reservations of these, which are sorted
 * sets by the time at which they expire, in Unix milliseconds. It is a script of its own because its arguments and
 * replies hold texts, and each call has one change: it has nothing in common with counting but how a counter is read
 * and changed.
 *
 * - KEYS: the record, then for each step its counter, a second key and the list of the counter; then the set of
 *   `DueReservations`, unless it is in another place. The second key is that of the odd windows of a sliding window, or
 *   what was given back to a token bucket, in microseconds; otherwise the counter again.
 * - ARGV: the record as it must be, empty for none; the new one, empty for none; and JSON: {@link CHANGE}.
 * - Result: a list with `done` or `denied` and for each step a count, by how much it was changed, and what it has found
 *   as a text, see `foundText`; `full`, `expired`, or `changed` and the record; or the error of a key.
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
local time, clock
${ALGORITHMS}
local before, after = ARGV[1], ARGV[2]
local record = pcall('GET', KEYS[1])
if type(record) == 'table' then return record end
if (record or '') ~= before then return { 'changed', record or '' } end
local change = cjson.decode(ARGV[3])
${CHANGE.read('change', 1)}
local opens, holds = ttl > 0, false
time = timeOf(now)
clock = math.floor(time / 1000)
now = clock
local steps, late = { unpack(change, ${CHANGE.size + 1}) }, {}
local due = KEYS[3 * #steps + 2]
for i = 1, #steps do
  ${STEP.read('steps[i]', 1, 'member', 'kind', 'decider', 'denies')}
  local counter, second, list = KEYS[3 * i - 1], KEYS[3 * i], KEYS[3 * i + 1]
  if decider ~= 0 then
    local state = read(decider, 3 * i - 2)
    if state.err then return state end
  end
  if member ~= '' then holds = true end
  if opens then
    local ended = pcall('ZRANGEBYSCORE', list, '-inf', now, 'LIMIT', 0, ending)
    if ended.err then return ended end
    if #ended > 0 then
      local hits = 0
      for _, each in ipairs(ended) do
        if kind == '' then
          hits = hits + heldBy(each)
        elseif string.sub(each, 1, 1) == 'c' then
          local back = giveBack(kind, counter, second, each)
          if type(back) == 'table' then return back end
        end
      end
      local rest = kind == '' and step(counter, -math.min(hits, LARGEST))
      if type(rest) == 'table' then return rest end
      pcall('ZREMRANGEBYRANK', list, 0, #ended - 1)
    end
    local isDenied = kind == 'max_concurrent' and denies ~= 'never'
    if member ~= '' and not isDenied and pcall('ZCOUNT', list, '(' .. now, '+inf') >= most then return { 'full' } end
  elseif member ~= '' then
    local score = pcall('ZSCORE', list, member)
    if type(score) == 'table' then return score end
    if not score and not record then return { 'expired' } end
    if not score and string.sub(member, 1, 1) == 'c' then
      late[i] = true
      steps[i][1] = steps[i][1] + heldBy(member)
    end
  end
end
local counts, sums, together, over, found = {}, {}, 0, 0, {}
local isOver = isDenied == 1
for i = 1, #steps do
  ${STEP.read('steps[i]', 1)}
  local counter, second = KEYS[3 * i - 1], KEYS[3 * i]
  local count, sum, isAbove = 0, 0, false
  found[i] = ''
  if kind == '' then
    count = sums[counter] or step(counter, 0)
    if type(count) == 'table' then return count end
    sum = math.min(LARGEST, count + hits)
    if hits < 0 then sum = math.max(0, sum) end
    sums[counter], isAbove = sum, sum > limit
  elseif decider ~= 0 and opens then
    local state = sums[counter] or read(decider, 3 * i - 2)
    found[i] = string.format('/%.0f/%.0f/%.0f', state.state, state.other, time)
    if member ~= '' and kind ~= 'max_concurrent' then
      found[i] = found[i] .. holdOf(kind, decider, state, second, whole)
    end
    sums[counter], isAbove = take(decider, state, whole, part)
    if not isAbove then sum = hits end
  elseif late[i] or hits >= 0 then
    if late[i] then whole, part = lateWhole, latePart end
    sum = hits
    local err = hits > 0 and keep(decider, take(decider, read(decider, 3 * i - 2), whole, part, true))
    if err then return err end
  elseif member ~= '' then
    local back = giveBack(kind, counter, second, member, whole, decider)
    if type(back) == 'table' then return back end
    sum = -math.floor(back / perHit)
  end
  counts[i] = { count, sum, isAbove }
  if denies == 'together' then together = together + 1 end
  if isAbove then
    if denies == 'alone' then isOver = true elseif denies == 'together' then over = over + 1 end
  end
end
isOver = opens and (isOver or (together > 0 and over == together))
local reply, texts = { isOver and 'denied' or 'done' }, {}
for i = 1, #steps do
  ${STEP.read('steps[i]', 1, 'kind')}
  local count, sum, isAbove = unpack(counts[i])
  local added = sum - count
  if isOver then
    added = 0
    if not isAbove then sum = count end
  end
  sum = kind == '' and math.max(0, sum) or 0
  reply[3 * i - 1], reply[3 * i], reply[3 * i + 1] = sum, added, found[i]
  texts[i] = string.format('%.0f:%.0f%s', sum, added, found[i])
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
  local counter, list = KEYS[3 * i - 1], KEYS[3 * i + 1]
  if kind ~= '' then
    if opens and sums[counter] and kind ~= 'max_concurrent' then keep(decider, sums[counter]) end
    sums[counter] = nil
  elseif hits ~= 0 then step(counter, hits, hits, expiry, left) end
  if member ~= '' then
    local name = string.gsub(member, '^c[%d/]*', 'c')
    local counted = string.sub(counter, 1, -1 - (SUFFIXES[kind] or 0))
    local dueMember = string.format('%s%s\n%s', PLACES[kind] or 'm', counted, name)
    local isDue = due and string.sub(member, 1, 1) == 'c'
    if opens then
      pcall('ZADD', list, now + ttl, heldMember(member, reply[3 * i], found[i]))
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
