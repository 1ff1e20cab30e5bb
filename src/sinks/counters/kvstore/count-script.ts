import { LEAST_GRANT, SHARE_OF_LEFT } from '../../../counting/operation';
import { COMMON, Fields, lua, script } from './script';

/** The argument: these, then runs of steps, each by its kind. */
export const CALL = new Fields(
  /**
   * The exclusive bound of the random part of expiries, and one such random part, from which that of each key follows.
   */
  'jitter',
  'random',
);

/** A limit. Its numbers are hits, those of a token bucket microseconds and parts of one. */
export const LIMIT = new Fields(
  'algorithm',
  /** The limit; of a token bucket, the time from empty to full, and its parts. */
  'most',
  'mostPart',
  /** How many parts a microsecond has; 1 except in token buckets. */
  'parts',
  /** The length of the window in milliseconds; 1 except in sliding windows. */
  'window',
  /** In seconds, for a key that has no expiry, or one in less than `left` seconds. */
  'expiry',
  'left',
);

/** What each run begins with: how many steps it has, and its {@link KIND}. */
export const RUN = new Fields('times', 'kind');

/** Numbers, which are read faster than texts. */
export const KIND = {
  /** Steps that only differ in their keys. */
  count: 1,
  /** The same, and existing keys are known to have an expiry, so that it need not be examined. */
  countKnown: 2,
  /** A group of steps, each of which follows. */
  stop: 3,
  /** The same, and only the steps that exceed their limits are counted in any case. */
  stopOver: 4,
  /** Steps that only differ in their keys, each of several limits, which follow. */
  decide: 5,
  /** A step of one limit that takes hits for later calls, or gives back those of a window. */
  decideAndLend: 6,
  /** As `count`, a step that takes hits for later calls. */
  countAndLend: 7,
};

export const COUNTED = new Fields(
  /** A text, for INCRBY. */
  'hits',
  /** In seconds; of `count` and `countKnown`, without the random part. */
  'expiry',
  /** The seconds that are left of the window. */
  'left',
);

export const STOPPED = new Fields('hits', 'expiry', 'left', 'limit');

/** What follows {@link COUNTED} in `countAndLend`. */
export const LENT = new Fields(
  'limit',
  /** Most hits to take. */
  'wants',
);

export const DECIDED = new Fields(
  'size',
  /** A list: how many equal calls follow each other. */
  'calls',
);
/** What follows {@link DECIDED} in `decideAndLend`. */
export const DECIDED_LENT = new Fields(
  'wants',
  /** For how long they may be used, in microseconds; and the microseconds that a hit takes from a token bucket. */
  'during',
  'perHit',
  /**
   * Where alone the calls count: the number of a sliding window, the last microsecond of a token bucket; -1:
   * everywhere.
   */
  'onlyIn',
);
export const DECIDED_LIMIT = new Fields(
  /** Its number among the limits of the call. */
  'number',
  /** What all calls take together, if it may be taken at once, otherwise 0; and the same as a text. */
  'total',
  'text',
  /** Whether existing keys are known to live long enough. */
  'isKnown',
  /** Lists: what each of the equal calls takes, negative if it is given back, and the parts of it. */
  'hits',
  'hitParts',
);

/**
 * Applies steps in order, each run of them by its kind:
 *
 * - `count` adds, reads or subtracts.
 * - `stop` does so unless any step of the group would exceed its limit: then only the steps that exceed theirs are
 *   counted, and the others are only read (STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT). Negative hits are always counted,
 *   and lower the count on which later steps of their group are judged.
 * - `decide` lets calls pass by limits with algorithms; of a rule with `all_or_nothing`, by all of its limits.
 * - `countAndLend` and `decideAndLend` then count hits for later calls, as many as a lease may have: see `grantOf`
 *   and `Algorithm.lend`.
 *
 * - KEYS: one for each step, or for each limit of it; of a sliding window two. A key may occur more than once.
 * - ARGV[1]: JSON, one argument because every argument costs the client and the server time: {@link CALL}. With
 *   limits that have an algorithm, ARGV[2]: JSON, a list of them, each a {@link LIMIT}; and in tests ARGV[3]: the Unix
 *   time in microseconds, instead of that of the server, which does not depend on the clocks of its callers.
 * - Result: a list with a count for each step that is not decided, or the error of its key; for each limit of one
 *   that is, its state before the calls, or the error of a key of its step and any number; after a step that lends, the
 *   hits that were taken; if there are limits with an algorithm, the time at the end.
 * - Atomic, because a key must not be left without expiry between its increment and its EXPIRE, because subtracting
 *   down to 0 reads and then writes, because otherwise concurrent calls would all see room below a limit before any of
 *   them is counted, and because a call that is denied must not change anything.
 *
 * The state of a limit is a number and another one:
 *
 * - A fixed window has its hits, and 0. The value of the key is the hits.
 * - A sliding window has the hits of the current window of the clock, and of the window before. It has a key for the
 *   windows with an even number and one for those with an odd number, so that one has the current window and the other
 *   the one before. The values are the number of the window, in its last digits only, times 2^32, plus its hits: what
 *   is left of older windows does not count.
 * - A token bucket has the time that it takes to be full, in microseconds, and the parts of one. The value of the key
 *   is the time at which it is full; where the rate needs it, with parts:
 *   `<microseconds>:<parts>/<parts of a microsecond>`. One that is full later than in its span is cut to it, because a
 *   clock that has gone back would otherwise close it for as long. INCRBY keeps the expiry, and costs half of a SET;
 *   the expiry is examined by the first step on a key in ten seconds of a caller.
 *
 * What all calls take is added first where that may be enough, and taken back where it is too much: a key that is in
 * use then costs one command. The caller decides each call again, as here.
 */
export const COUNT = script(lua`${COMMON}
local list, KEYS = cjson.decode(ARGV[1]), KEYS
${CALL.read('list', 1)}
local limits, time, clock
local function grantOf(wants, left)
  local granted = math.min(wants, math.floor(left / ${SHARE_OF_LEFT}))
  return granted < ${LEAST_GRANT} and 0 or granted
end
local results, count, used = {}, 0, 0
local at = ${CALL.size + 1}
while list[at] do
  ${RUN.read('list', 'at')}
  at = at + ${RUN.size}
  if kind <= ${KIND.countKnown} then
    ${COUNTED.read('list', 'at')}
    at = at + ${COUNTED.size}
    local change = tonumber(hits)
    local created = kind == ${KIND.countKnown} and change
    for i = used + 1, used + times do
      count = count + 1
      results[count] = step(KEYS[i], change, hits, expiry + (random + i * 7919) % jitter, left, created)
    end
    used = used + times
  elseif kind <= ${KIND.stopOver} then
    local from, isAnyOver, over, lowered = at, kind == ${KIND.stopOver}, {}, {}
    for i = used + 1, used + times do
      ${STOPPED.read('list', 'from', 'hits', 'limit')}
      from = from + ${STOPPED.size}
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
      ${STOPPED.read('list', 'at', 'hits', 'expiry', 'left')}
      at = at + ${STOPPED.size}
      if isAnyOver and not over[i] then hits = math.min(0, hits) end
      count = count + 1
      results[count] = step(KEYS[i], hits, hits, expiry, left)
    end
    used = used + times
  elseif kind == ${KIND.countAndLend} then
    ${COUNTED.read('list', 'at')}
    at = at + ${COUNTED.size}
    ${LENT.read('list', 'at')}
    at = at + ${LENT.size}
    used = used + 1
    local stored, granted = step(KEYS[used], tonumber(hits), hits, expiry, left), 0
    if type(stored) == 'number' then
      granted = grantOf(wants, limit - stored)
      if granted ~= 0 and type(step(KEYS[used], granted, granted, expiry, left)) == 'table' then granted = 0 end
    end
    results[count + 1], results[count + 2] = stored, granted
    count = count + 2
  else
    ${DECIDED.read('list', 'at')}
    at = at + ${DECIDED.size}
    local lent = at
    if kind == ${KIND.decideAndLend} then at = at + ${DECIDED_LENT.size} end
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
        ${DECIDED_LIMIT.read('list', 'from', 'number', 'total', 'text', 'isKnown')}
        from = from + ${DECIDED_LIMIT.size}
        local limit = limits[number]
        ${LIMIT.read('limit', 1, 'algorithm', 'most')}
        used = used + 1
        local key, base, other, weight = KEYS[used], 0, 0, 0
        if algorithm == 'token_bucket' then
          base = time
        elseif algorithm == 'sliding_window' then
          ${LIMIT.read('limit', 1, 'window')}
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
            ${LIMIT.read('limit', 1, 'parts')}
            value, isKept = math.min(tonumber(number), LARGEST), part == '' and parts == 1
            part = tonumber(part)
            if part and part < parts and tonumber(of) == parts then other = part elseif part then value = value + 1 end
          end
        end
        local state = value - base
        if algorithm == 'token_bucket' then
          ${LIMIT.read('limit', 1, 'mostPart')}
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
          ${DECIDED_LIMIT.read('list', 'from', 'total', 'text')}
          from = from + ${DECIDED_LIMIT.size}
          if isDone and not err then
            states[l] = states[l] + total
          elseif added[l] then
            if added[l] == 0 then pcall('DEL', keys[l]) else pcall('DECRBY', keys[l], text) end
          end
        end
        local isOver = false
        if kind == ${KIND.decideAndLend} then
          ${DECIDED_LENT.read('list', 'lent', 'onlyIn')}
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
              ${DECIDED_LIMIT.read('list', 'from', 'number', 'hits', 'hitParts')}
              from = from + ${DECIDED_LIMIT.size}
              local limit = limits[number]
              ${LIMIT.read('limit', 1, 'algorithm', 'most')}
              local hits = hits[c]
              local state, other = states[l] + hits, others[l]
              if algorithm == 'token_bucket' then
                ${LIMIT.read('limit', 1, 'mostPart', 'parts')}
                other = other + hitParts[c]
                if other >= parts then state, other = state + 1, other - parts end
                if state < 0 then state, other = 0, 0 end
                if state > most or (state == most and other > mostPart) then isAllowed = false end
              else
                ${LIMIT.read('limit', 1, 'window')}
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
        if kind == ${KIND.decideAndLend} then
          ${DECIDED_LENT.read('list', 'lent', 'wants', 'during', 'perHit')}
          ${DECIDED_LIMIT.read('list', 'at', 'number')}
          ${LIMIT.read('limits[number]', 1, 'algorithm', 'most', 'window')}
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
          ${DECIDED_LIMIT.read('list', 'from', 'number', 'total', 'isKnown')}
          from = from + ${DECIDED_LIMIT.size}
          local limit, key, reply = limits[number], keys[l], nil
          local turned = others[l] - results[first + 2 * l]
          if previousKeys[l] and turned ~= 0 then
            reply = pcall('INCRBY', previousKeys[l], turned)
            turned = 0
          end
          local isChanged = isCut[l] or turned ~= 0 or states[l] ~= results[first + 2 * l - 1]
          ${LIMIT.read('limit', 1, 'parts', 'expiry', 'left')}
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
    at = at + ${DECIDED_LIMIT.size} * size
  end
end
if clock then results[count + 1] = time end
return results
`);
