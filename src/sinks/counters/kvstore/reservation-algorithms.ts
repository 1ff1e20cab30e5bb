import { LONGEST_KNOWN } from '../../../streams/ports/reservations';
import { LIMIT, PLACES_IN_LUA, byAlgorithm, windowValue } from './count-algorithms';
import { lua } from './script';

/** In seconds: what was given back matters to reservations that were made before. */
const GIVEN_LIFETIME = LONGEST_KNOWN / 1000;

/**
 * In Lua: what reservations do to the states of algorithms, as `src/counting/reserved.ts`, at the `time` in
 * microseconds and on the `clock` in milliseconds.
 *
 * - `read(decider, used)`: the state of a limit whose keys follow that with the number `used`; or the error of a key.
 * - `take(decider, state, whole, part, isReport)`: the state after a call, and whether it exceeds the limit: then it is
 *   the state before, unless that counts nevertheless.
 * - `keep(decider, state)`: writes a state. Returns the error of a key.
 * - `holdOf(kind, decider, state, given, whole)`: the text of the `Hold` of what is taken from a state.
 * - `giveBack(kind, key, second, member, most, decider)`: gives back what a member holds, at most so much. Returns how
 *   much, or the error of a key. Without a decider, also to a window that does not count any more.
 */
export const ALGORITHMS = lua`
local function read(decider, used)
  ${LIMIT.read('decider', 1, 'algorithm', 'most', 'ceiling', 'parts')}
  local limit, l, total, previousKeys, isCut, err = decider, 1, 0, {}, {}, nil
  used = used + 1
  local key, base, other, weight = KEYS[used], 0, 0, 0
  ${byAlgorithm('open')}
  if err then return err end
  local value, isAdded, isKept = pcall('GET', key) or '0', false, true
  if type(value) == 'table' then return value end
  local number, rest, of = string.match(value, '^(-?%d+):?(%d*)/?(%d*)$')
  if not number then return redis.error_reply('ERR value is not an integer') end
  value = math.min(tonumber(number), LARGEST)
  local rest = tonumber(rest)
  if rest and rest < parts and tonumber(of) == parts then other = rest elseif rest then value = value + 1 end
  local state = value - base
  ${byAlgorithm('correct')}
  return { key = key, base = base, state = state, other = other, previous = previousKeys[1], was = other }
end
local function take(decider, before, whole, part, isReport)
  ${LIMIT.read('decider', 1, 'algorithm', 'most')}
  local limit, hits, spans, c, isOver = decider, whole, { whole, part }, 1, false
  local state, other = before.state + hits, before.other
  ${byAlgorithm('call')}
  if isReport then
    ${byAlgorithm('cut')}
  elseif isOver and whole + part > 0 then
    return before, true
  end
  local after = {}
  for name, value in pairs(before) do after[name] = value end
  after.state, after.other = state, other
  return after, false
end
local function keep(decider, after)
  ${LIMIT.read('decider', 1, 'algorithm', 'most', 'parts', 'expiry', 'left')}
  local l, states = 1, { after.state }
  ${byAlgorithm('outlive')}
  local value = string.format('%.0f', after.base + after.state)
  if not after.previous and after.other > 0 then value = string.format('%s:%.0f/%.0f', value, after.other, parts) end
  local reply = pcall('SET', after.key, value, 'EX', expiry)
  if type(reply) == 'table' and reply.err then return reply end
end
local function numbersIn(text)
  local numbers = {}
  for number in string.gmatch(string.match(text, '^%a?([%d/]*)'), '%d+') do
    numbers[#numbers + 1] = tonumber(number)
  end
  return numbers
end
local function holdOf(kind, decider, state, given, whole)
  if kind == 'token_bucket' then
    local before = tonumber(pcall('GET', given) or 0) or 0
    pcall('EXPIRE', given, ${GIVEN_LIFETIME})
    return string.format('/%.0f/%.0f/%.0f', whole, time + state.state + whole, before)
  end
  ${LIMIT.read('decider', 1, 'window')}
  return string.format('/%.0f', math.floor(clock / window))
end
local function giveBack(kind, key, second, member, most, decider)
  local hits, first, full, before = unpack(numbersIn(member))
  if not first then return 0 end
  if kind == 'token_bucket' then
    local given = tonumber(pcall('GET', second) or 0) or 0
    local value = pcall('GET', key)
    if not value or type(value) == 'table' then return value or 0 end
    local whole, rest = string.match(value, '^(-?%d+)(.*)$')
    if not whole then return redis.error_reply('ERR value is not an integer') end
    local back = math.min(most or first, full - math.max(0, given - before) - time, whole - time)
    if back <= 0 then return 0 end
    if rest == '' then pcall('DECRBY', key, back)
    else pcall('SET', key, string.format('%.0f%s', whole - back, rest), 'PX', pcall('PTTL', key)) end
    pcall('INCRBY', second, back)
    pcall('EXPIRE', second, ${GIVEN_LIFETIME})
    return back
  end
  if decider then
    ${LIMIT.read('decider', 1, 'window')}
    local age = math.floor(clock / window) - first
    if age ~= 0 and age ~= 1 then return 0 end
  end
  local own = first % 2 == 0 and key or second
  local value = step(own, 0)
  if type(value) == 'table' then return value end
  local counted = value - ${windowValue('first')}
  if counted < 0 or counted >= 4294967296 then return 0 end
  local back = math.min(most or hits, counted)
  if back > 0 then pcall('DECRBY', own, back) end
  return back
end
local function heldMember(member, held, found)
  local hold = string.match(found, '^/%d+/%d+/%d+(.*)$') or ''
  return string.format('%s%.0f%s%s', string.sub(member, 1, 1), held, hold, string.sub(member, 2))
end
${PLACES_IN_LUA}
`;
