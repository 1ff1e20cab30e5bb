import { LEAST_GRANT, SHARE_OF_LEFT } from '../../../counting/grant';
import { BLOCK, LIMIT, byAlgorithm } from './count-algorithms';
import { COMMON, Fields, type Values, lua, script } from './script';

/** The argument: these, then runs of steps, each by its kind. */
export const CALL = new Fields(
  /**
   * The exclusive bound of the random part of expiries, and one such random part, from which that of each key follows.
   */
  'jitter',
  'random',
);

/** What each run begins with: how many steps it has, and the number of its {@link RunKind}. */
export const RUN = new Fields('times', 'kind');

/** A kind of run: the values that follow {@link RUN}, and the Lua that applies it, in which they are variables. */
class Kind<Name extends string> extends Fields<Name> {
  apply = '';

  /** @param number unlike that of other kinds. A number, because Lua compares them faster than strings */
  constructor(
    readonly number: number,
    ...names: readonly Name[]
  ) {
    super(...names);
  }

  does(apply: string): this {
    this.apply = apply;
    return this;
  }

  override write(values: Values<Name>): string {
    return `${this.number},${super.write(values)}`;
  }
}

/** Each step of a `stop` run. */
export const STOPPED = new Fields('hits', 'expiry', 'left', 'limit');

/** Each limit of a run that decides. */
export const DECIDED = new Fields(
  /** The number of the limit among those of the call. */
  'number',
  /** What all calls take together, if it may be taken at once, otherwise 0; and the same as a text. */
  'total',
  'text',
  /** Whether existing keys are known to live long enough. */
  'isKnown',
  /** A list: what each of the equal calls takes, negative if it is given back, followed by the parts of it. */
  'spans',
);

/**
 * In Lua: each call, with all of its hits or with none, on all limits of the step.
 *
 * @param then what follows for the state after a call
 */
function calls(then = ''): string {
  return lua`
  for c = 1, (err or isDone) and 0 or #calls do
    for _ = 1, calls[c] do
      local isOver, from = false, at
      for l = 1, size do
        ${DECIDED.take('list', 'from', 'number', 'spans')}
        local limit = limits[number]
        ${LIMIT.read('limit', 1, 'algorithm', 'most')}
        local hits = spans[2 * c - 1]
        local state, other = states[l] + hits, others[l]
        ${byAlgorithm('call')}
        ${then}
        nextStates[l], nextOthers[l] = state, other
      end
      if isOver then break end
      states, nextStates, others, nextOthers = nextStates, states, nextOthers, others
    end
  end`;
}

/** In Lua: what a limit that blocks has after {@link LIMIT}; `firstBlock` is nil for any other. */
const BLOCK_OF_LIMIT = BLOCK.read('limit', LIMIT.size + 1);

/**
 * In Lua: reads the block of a limit from the key before those of its counter. Like `Blocking.stateOf`; one that is
 * changed by that is written.
 */
const READ_BLOCK = lua`
  ${BLOCK_OF_LIMIT}
  local stored = false
  ends[l], lengths[l], blocks[l], blockKeys[l] = 0, 0, nil, nil
  if firstBlock then
    used = used + 1
    blockKeys[l] = KEYS[used]
    stored = pcall('GET', KEYS[used])
  end
  if type(stored) == 'table' then
    err = stored
  elseif stored then
    local last, length = string.match(stored, '^(%d+):(%d+)$')
    if not last then
      err = redis.error_reply('ERR value is not an integer')
    elseif time < last + forgotten then
      ends[l], lengths[l] = math.min(tonumber(last), time + length), tonumber(length)
      if ends[l] < tonumber(last) then blocks[l] = 'moved' end
    end
  end
  if time < ends[l] then total, isDone, blocks[l] = 0, false, blocks[l] or 'lasts' end`;

/** In Lua: adds the block of each limit of a step to the results. @see CALLS */
const BLOCKED = lua`
  for l = 1, size do
    results[count + 1], results[count + 2] = ends[l], lengths[l]
    count = count + 2
  end`;

/**
 * In Lua: like {@link CALLS}, where a call that a limit denies starts its block, and a block denies all calls but those
 * that give hits back, which change nothing. Like `Blocking.decide`.
 */
const BLOCKING_CALLS = lua`
  for l = 1, size do
    if endsBlock and lengths[l] > 0 then ends[l], lengths[l], blocks[l] = 0, 0, 'ended' end
  end
  for c = 1, (err or isDone) and 0 or #calls do
    for _ = 1, calls[c] do
      local isDenied, from, denied = false, at, {}
      for l = 1, size do
        ${DECIDED.take('list', 'from', 'number', 'spans')}
        local limit, isOver, hits = limits[number], false, spans[2 * c - 1]
        ${LIMIT.read('limit', 1, 'algorithm', 'most')}
        if time < ends[l] then
          isOver = hits >= 0
          nextStates[l], nextOthers[l] = states[l], others[l]
        else
          local state, other = states[l] + hits, others[l]
          ${byAlgorithm('call')}
          if isReport then
            isOver = false
            ${byAlgorithm('cut')}
          end
          denied[l], nextStates[l], nextOthers[l] = isOver, state, other
        end
        isDenied = isDenied or isOver
      end
      if isDenied then
        from = at
        for l = 1, size do
          ${DECIDED.take('list', 'from', 'number')}
          local limit = limits[number]
          ${BLOCK_OF_LIMIT}
          if denied[l] and firstBlock then
            lengths[l] = lengths[l] > 0 and math.min(longest, lengths[l] * factor) or firstBlock
            ends[l], blocks[l] = time + lengths[l], 'started'
            states[l], others[l] = 0, 0
          end
        end
        break
      end
      states, nextStates, others, nextOthers = nextStates, states, nextOthers, others
    end
  end`;

/** In Lua: writes the block of a limit, or removes it; without the counter, if it has started. Sets `reply`. */
const WRITE_BLOCK = lua`
  ${BLOCK_OF_LIMIT}
  if blocks[l] == 'ended' then
    pcall('DEL', blockKeys[l])
    reply = {}
  else
    local value = string.format('%.0f:%.0f', ends[l], lengths[l])
    reply = pcall('SET', blockKeys[l], value, 'PX', math.ceil((ends[l] - time + forgotten) / 1000) + ${20_000})
  end
  if blocks[l] == 'started' and not reply.err then pcall('DEL', key, previousKeys[l] or key) end
  if not reply.err then reply = nil end`;

/**
 * What runs of counts begin with: a text for INCRBY; the lifetime of a new key, and what is left of the window, in
 * seconds.
 */
const COUNTED = ['hits', 'expiry', 'left'] as const;

/** In Lua: counts each step. Keys get different random parts of their expiry. @param created see {@link COMMON} */
function counted(created: string): string {
  return lua`
    local change = tonumber(hits)
    for i = used + 1, used + times do
      count = count + 1
      results[count] = step(KEYS[i], change, hits, expiry + (random + i * 7919) % jitter, left, ${created})
    end
    used = used + times`;
}

/** Runs of steps that are counts. Those of a run only differ in their keys, except in `stop`. */
const COUNTS = {
  /** Adds, reads or subtracts. */
  count: new Kind(1, ...COUNTED).does(counted('false')),
  /** Adds to keys that are known to have an expiry: no TTL is read, unless the key may be new. */
  addToExpiring: new Kind(2, ...COUNTED).does(counted('change')),
  /** As `count`, then adds hits for later calls, as many as a lease may have: see `grantOf`. */
  countAndReserve: new Kind(3, ...COUNTED, 'limit', 'wants').does(lua`
    for i = used + 1, used + times do
      local stored, granted = step(KEYS[i], tonumber(hits), hits, expiry, left), 0
      if type(stored) == 'number' then
        granted = grantOf(wants, limit - stored)
        if granted ~= 0 and type(step(KEYS[i], granted, granted, expiry, left)) == 'table' then granted = 0 end
      end
      results[count + 1], results[count + 2] = stored, granted
      count = count + 2
    end
    used = used + times`),
  /**
   * A group of steps, which follow. They are counted as with `count`, unless any of them would exceed its limit: then
   * only the steps that exceed theirs are, and the others are only read (STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT).
   * Negative hits are always counted, and lower the count on which later steps of their group are judged. `isOver`:
   * whether another step is over in any case.
   */
  stop: new Kind(4, 'isOver').does(lua`
      local from, judged = at, {}
      for i = used + 1, used + times do
        ${STOPPED.take('list', 'from', 'hits', 'limit')}
        local key = KEYS[i]
        local stored = judged[key] or step(key, 0)
        if type(stored) == 'number' then
          if hits < 0 then
            judged[key] = math.max(0, stored + hits)
          elseif stored + hits > limit then
            isOver, judged[i] = true, true
          end
        end
      end
      for i = used + 1, used + times do
        ${STOPPED.take('list', 'at', 'hits', 'expiry', 'left')}
        if isOver and not judged[i] then hits = math.min(0, hits) end
        count = count + 1
        results[count] = step(KEYS[i], hits, hits, expiry, left)
      end
      used = used + times`),
};

/**
 * What runs begin with that decide calls: how many limits each step has, which follow as {@link DECIDED}; and a list of
 * how many equal calls follow each other. The steps only differ in their keys.
 */
const CALLED = ['size', 'calls'] as const;

/** Runs of steps that have limits with algorithms: each changes `states` and `others`, which are read and kept. */
const DECISIONS = {
  /** Lets calls pass by limits; of a rule with `all_or_nothing`, by all of them. */
  decide: new Kind(5, ...CALLED).does(calls()),
  /**
   * Lets calls pass, then counts hits for later calls, as many as a lease may have: see `Algorithm.reserve`. `during`:
   * for how long they may be used, in microseconds; `perHit`: the microseconds that one takes from a token bucket.
   */
  decideAndReserve: new Kind(6, ...CALLED, 'wants', 'during', 'perHit').does(lua`
      ${calls()}
      count = count + 1
      if not err then
        ${DECIDED.read('list', 'at', 'number')}
        ${LIMIT.read('limits[number]', 1, 'algorithm', 'most', 'window')}
        local state, other, granted = states[1], others[1]
        ${byAlgorithm('reserve')}
        states[1], others[1], results[count] = state, other, granted
      end`),
  /** Counts reports, which count also beyond the limit: each step has one limit. */
  report: new Kind(8, ...CALLED).does(calls(`isOver = false\n${byAlgorithm('cut')}`)),
  /**
   * Lets calls pass by limits of which some block, with a key before those of its counter. `endsBlock`: a block ends
   * before the calls; `isReport`: they are counted as with `report`. The results of a step are followed by the end and
   * the length of the block of each of its limits.
   */
  block: new Kind(9, ...CALLED, 'endsBlock', 'isReport').does(BLOCKING_CALLS),
  /**
   * Gives hits back, unless they do not count any more. `onlyIn`: where they were taken, the number of a sliding window
   * or the last microsecond of a token bucket.
   */
  giveBack: new Kind(7, ...CALLED, 'onlyIn').does(lua`
      ${DECIDED.read('list', 'at', 'number', 'spans')}
      ${LIMIT.read('limits[number]', 1, 'algorithm')}
      local isOver, state, hits = false, states[1], spans[1]
      ${byAlgorithm('giveBack')}
      if not isOver then ${calls()} end`),
};

/** What a run of steps does, by kind. A new kind is a row, with its arithmetic. */
export const RunKind = { ...COUNTS, ...DECISIONS };

/** In Lua: a branch for each kind of a table; an `else` or an `end` follows. */
function byKind(kinds: Readonly<Record<string, Kind<string>>>, branch: (each: Kind<string>) => string): string {
  const branches = Object.values(kinds).map((each) => `if kind == ${each.number} then\n${branch(each)}`);
  return branches.join('\nelse');
}

/**
 * Applies steps in order, each run of them by its {@link RunKind}.
 *
 * - KEYS: one for each step, or for each limit of it; of a sliding window two. A key may occur more than once.
 * - ARGV[1]: JSON, one argument because every argument costs the client and the server time: {@link CALL}. With
 *   limits that have an algorithm, ARGV[2]: JSON, a list of them, each a {@link LIMIT}; and in tests ARGV[3]: the Unix
 *   time in microseconds, instead of that of the server, which does not depend on the clocks of its callers.
 * - Result: a list with a count for each step that is not decided, or the error of its key; for each limit of one
 *   that is, its state before the calls, or the error of a key of its step and any number; after a step that reserves,
 *   the hits that were taken; if there are limits with an algorithm, the time at the end.
 * - Atomic, because a key must not be left without expiry between its increment and its EXPIRE, because subtracting
 *   down to 0 reads and then writes, because otherwise concurrent calls would all see room below a limit before any of
 *   them is counted, and because a call that is denied must not change anything.
 *
 * What all calls take is added first where that may be enough, and taken back where it is too much: a key that is in
 * use then costs one command. INCRBY keeps the expiry, and costs half of a SET; the expiry is examined by the first
 * step on a key in ten seconds of a caller. The caller decides each call again, as here.
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
  ${RUN.take('list', 'at')}
  ${byKind(COUNTS, (each) => `${each.take('list', 'at')}\n${each.apply}`)}
  else
    local head = at
    ${RunKind.decide.read('list', 'head')}
    local isReport = kind == ${RunKind.report.number} or kind == ${RunKind.block.number} and list[head + 3]
    ${byKind(DECISIONS, ({ size }) => `at = at + ${size}`)} end
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
    local ends, lengths, blocks, blockKeys = {}, {}, {}, {}
    for _ = 1, times do
      local from, first, err, isDone, isWritten = at, count, nil, true, true
      for l = 1, size do
        ${DECIDED.take('list', 'from', 'number', 'total', 'text', 'isKnown')}
        local limit = limits[number]
        ${LIMIT.read('limit', 1, 'algorithm', 'most', 'ceiling')}
        if kind == ${RunKind.block.number} then ${READ_BLOCK} end
        used = used + 1
        local key, base, other, weight = KEYS[used], 0, 0, 0
        ${byAlgorithm('open')}
        local value, isAdded, isKept = total > 0 and isDone and pcall('INCRBY', key, text), true, true
        if type(value) == 'number' then
          value = value - total
        else
          value, isAdded = pcall('GET', key) or '0', false
          if type(value) == 'table' then err, value = value, '' end
          local number, part, of = string.match(value, '^(-?%d+):?(%d*)/?(%d*)$')
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
        ${byAlgorithm('correct')}
        if isReport then most, weight = ceiling, 0 end
        isDone = isDone and isAdded and state + total + weight <= most
        isWritten = isWritten and isKept and isKnown and value ~= 0
        results[count + 1], results[count + 2] = state, other
        count = count + 2
        if err or size > 1 or not (isDone and isWritten) then
          keys[l], bases[l], states[l], others[l] = key, base, state, other
          added[l], kept[l] = isAdded and value, isKept and value
        end
      end
      if kind == ${RunKind.block.number} then ${BLOCKED} end
      if err or not (isDone and isWritten) then
        from = at
        for l = 1, size do
          ${DECIDED.take('list', 'from', 'total', 'text')}
          if isDone and not err then
            states[l] = states[l] + total
          elseif added[l] then
            if added[l] == 0 then pcall('DEL', keys[l]) else pcall('DECRBY', keys[l], text) end
          end
        end
        ${byKind(DECISIONS, (each) => `${each.read('list', 'head')}\n${each.apply}`)} end
        from = at
        for l = 1, err and 0 or size do
          ${DECIDED.take('list', 'from', 'number', 'total', 'isKnown')}
          local limit, key, reply = limits[number], keys[l], nil
          local block = blocks[l]
          if block and block ~= 'lasts' then ${WRITE_BLOCK} end
          if block ~= 'started' and block ~= 'lasts' then
            local turned = others[l] - results[first + 2 * l]
            if previousKeys[l] and turned ~= 0 then
              reply = pcall('INCRBY', previousKeys[l], turned)
              turned = 0
            end
            local isChanged = isCut[l] or turned ~= 0 or states[l] ~= results[first + 2 * l - 1]
            ${LIMIT.read('limit', 1, 'algorithm', 'most', 'parts', 'expiry', 'left')}
            ${byAlgorithm('outlive')}
            if isChanged and not kept[l] then
              local value = bases[l] + states[l]
              if not previousKeys[l] and others[l] > 0 then
                value = string.format('%.0f:%.0f/%.0f', value, others[l], parts)
              end
              reply = pcall('SET', key, value, 'EX', expiry)
            else
              if isChanged and not isDone then reply = pcall('INCRBY', key, bases[l] + states[l] - kept[l]) end
              if not isKnown or kept[l] == 0 then expire(key, expiry, left) end
            end
          end
          if type(reply) == 'table' and reply.err then err = err or reply end
        end
        for i = first + 1, err and count or first, 2 do results[i] = err end
      end
    end
    at = at + ${DECIDED.size} * size
  end
end
if clock then results[count + 1] = time end
return results
`);
