import { type Algorithm, MOST_REPORTED, type Span } from '../../../counting/algorithms/algorithm';
import { LEAST_RETURNABLE, type TokenBucket } from '../../../counting/algorithms/bucket';
import { MOST_IN_WINDOW } from '../../../counting/algorithms/sliding';
import { Fields, lua } from './script';

/** A limit with an algorithm. Its numbers are hits, those of a token bucket microseconds and parts of one. */
export const LIMIT = new Fields(
  'algorithm',
  /** The limit; of a token bucket, the time from empty to full, and its parts. */
  'most',
  'mostPart',
  /** The largest state that reports can make: microseconds of a token bucket, hits of a window. */
  'ceiling',
  /** How many parts a microsecond has; 1 except in token buckets. */
  'parts',
  /** The length of the window in milliseconds; 1 except in sliding windows. */
  'window',
  /** In seconds, for a key that has no expiry, or one in less than `left` seconds. */
  'expiry',
  'left',
);

/** What follows of a limit that blocks: times in microseconds. */
export const BLOCK = new Fields('firstBlock', 'factor', 'longest', 'forgotten');

/** In Lua: the hits of the window before, weighted with the part of it that a window which ends now would cover. */
const WEIGHT = 'math.ceil(other * (window - clock % window) / window)';

/** In Lua: a window's number in the value of its key; see {@link STORED}. */
export function windowValue(index: string): string {
  return `(${index} % 2097151 + 1) * 4294967296`;
}

/**
 * What an algorithm does, of a limit with a `key`, at a point of the script; left out: nothing.
 *
 * - `open` sets `base`, which the value of the key is above `state`; with several keys, also `key`, `other`, `weight`.
 * - `correct` replaces a `state` that the limit cannot have. The value is not changed by INCRBY, unless `isKept`.
 * - `call` makes `state`, with the hits of a call, the state after it; it sets `isOver` if that exceeds the limit.
 * - `cut` lowers such a state of a report to the largest one.
 * - `outlive` makes `expiry` and `left` longer for a state that lasts longer than that of a full counter.
 * - `giveBack` sets `isOver` if `hits` that are given back, negative, do not count any more.
 * - `reserve` takes `granted` hits, at most `wants`, from `state` and `other`.
 */
type Part = 'open' | 'correct' | 'call' | 'cut' | 'outlive' | 'giveBack' | 'reserve';

/** The numbers of a {@link LIMIT} that differ between algorithms. */
export type Numbers = Readonly<Record<'most' | 'mostPart' | 'ceiling' | 'parts' | 'window', number>>;

/** An algorithm: its {@link Part}s in Lua, and what calls of the scripts have to know of it. */
interface StoredAlgorithm extends Readonly<Partial<Record<Part, string>>> {
  /** What follows the key of a limit in each of its keys; left out: it has one, as it is. */
  readonly suffixes?: readonly string[];
  /**
   * What begins the members of the set of {@link DueReservations}, a letter that no other algorithm has; left out:
   * nothing is reserved by the state.
   */
  readonly place?: string;
  /** Whether `open` or no one sets the expiry of its key, so that it is never examined. */
  readonly isExpiryKept?: boolean;
  /** Whether its key is that of one window, and expires after it. */
  readonly isOfWindow?: boolean;
  /** The numbers that differ from what {@link numbersOf} has for every algorithm; left out: none. */
  numbers?(algorithm: Algorithm): Partial<Numbers>;
  /** What a call takes; left out: its hits. @param isReport whether these count also beyond the limit */
  takenBy?(algorithm: Algorithm, hits: number, isReport: boolean): Span;
}

/** Hits of the current window. @param weight in Lua: what counts of the `other` ones, of the window before */
function windows(weight: string) {
  return {
    call: lua`
    ${LIMIT.read('limit', 1, 'window')}
    other, state = math.max(0, other + math.min(0, state)), math.max(0, state)
    if hits > 0 and state + ${weight} > most then isOver = true end`,
    cut: lua`
    ${LIMIT.read('limit', 1, 'ceiling')}
    state = math.min(state, ceiling)`,
    reserve: lua`
    granted = grantOf(wants, most - state - ${weight})
    state = state + granted`,
  };
}

/** Hits of the current window and of the one before, each of which has a key. @param weight as of {@link windows} */
function twoWindows(weight: string): StoredAlgorithm {
  return {
    ...windows(weight),
    suffixes: ['_0', '_1'],
    isExpiryKept: true,
    numbers: ({ lengthSeconds }) => ({ ceiling: MOST_IN_WINDOW, window: lengthSeconds * 1000 }),
    open: lua`
      ${LIMIT.read('limit', 1, 'window')}
      local index = math.floor(clock / window)
      base = ${windowValue('index')}
      key, previousKeys[l] = KEYS[used + index % 2], KEYS[used + 1 - index % 2]
      used = used + 1
      local previous = step(previousKeys[l], 0)
      if type(previous) == 'table' then
        err = previous
      else
        other = previous % 4294967296
        if previous - other ~= ${windowValue('(index - 1)')} then other = 0 end
        weight = ${weight}
      end`,
    correct: lua`
      if state < 0 or state >= 4294967296 then state, isKept = 0, false end`,
    giveBack: lua`
      isOver = bases[1] ~= ${windowValue('onlyIn')}`,
  };
}

/**
 * The algorithms as in `src/counting/algorithms`. The state of a limit is a number and another one:
 *
 * - A fixed window has its hits, and 0. The value of the key is the hits.
 * - A sliding window has the hits of the current window of the clock, and of the window before. It has a key for the
 *   windows with an even number and one for those with an odd number, so that one has the current window and the other
 *   the one before. The values are the number of the window, in its last digits only, times 2^32, plus its hits: what
 *   is left of older windows does not count.
 * - A token bucket has the time that it takes to be full, in microseconds, and the parts of one. The value of the key
 *   is the time at which it is full; where the rate needs it, with parts:
 *   `<microseconds>:<parts>/<parts of a microsecond>`. One that is full later than it can be is cut to that, because a
 *   clock that has gone back would otherwise close it for as long.
 * - `max_concurrent` has the open reservations, the members of a sorted set beside the key, which is always absent.
 */
const STORED: Readonly<Record<Algorithm['name'], StoredAlgorithm>> = {
  token_bucket: {
    place: 'b',
    numbers: ({ span, parts, ceiling }: TokenBucket) => {
      return { most: span.whole, mostPart: span.part, ceiling: ceiling.whole, parts };
    },
    // More than fit into a bucket never do, unless they are reported.
    takenBy: (bucket: TokenBucket, hits, isReport) => {
      return hits > bucket.capacity && !isReport ? { whole: bucket.span.whole + 1, part: 0 } : bucket.spanOf(hits);
    },
    open: lua`
      base = time`,
    correct: lua`
      ${LIMIT.read('limit', 1, 'mostPart', 'ceiling')}
      isCut[l] = state > ceiling or (state == ceiling and other > mostPart)
      if state < 0 then
        if value == 0 then
          isKept = false
        elseif isAdded then
          pcall('INCRBY', key, -state)
          value = base
        end
        state, other = 0, 0
      elseif isCut[l] then
        state, other = ceiling, mostPart
      end`,
    call: lua`
      ${LIMIT.read('limit', 1, 'mostPart', 'parts')}
      other = other + spans[2 * c]
      if other >= parts then state, other = state + 1, other - parts end
      if state < 0 then state, other = 0, 0 end
      if state > most or (state == most and other > mostPart) then isOver = true end`,
    cut: lua`
      ${LIMIT.read('limit', 1, 'mostPart', 'ceiling')}
      if state > ceiling or (state == ceiling and other > mostPart) then state, other = ceiling, mostPart end`,
    outlive: lua`
      local debt = math.max(0, math.ceil((states[l] - most) / 1000000))
      expiry, left = expiry + debt, left + debt`,
    giveBack: lua`
      isOver = time > onlyIn or state + hits < ${LEAST_RETURNABLE}`,
    reserve: lua`
      local whole = other > 0 and state + 1 or state
      local full = math.max(whole, during)
      wants = math.min(wants, math.floor((most - 2 - full) / perHit))
      granted = grantOf(wants, math.floor((most - 2 - whole) / perHit))
      if granted ~= 0 then state, other = full + math.ceil(granted * perHit) + 1, 0 end`,
  },
  sliding_window: { ...twoWindows(WEIGHT), place: 'w' },
  fixed_window: { ...windows('other'), isOfWindow: true },
  max_concurrent: {
    isOfWindow: true,
    isExpiryKept: true,
    suffixes: ['', ':reservations'],
    takenBy: () => ({ whole: 0, part: 0 }),
    open: lua`
      used = used + 1
      local opened = pcall('ZCOUNT', KEYS[used], '(' .. clock, '+inf')
      if type(opened) == 'table' then err = opened else base = -opened end`,
    correct: lua`
      isKept = false`,
    call: lua`
      if hits > 0 and state > most then isOver = true end`,
  },
};

/** What scripts have to know of an algorithm that does not block. */
export function storedAs({ name }: Algorithm): StoredAlgorithm {
  return STORED[name];
}

export function numbersOf(algorithm: Algorithm): Numbers {
  const { requestsPerUnit: most } = algorithm;
  return {
    most,
    mostPart: 0,
    ceiling: MOST_REPORTED,
    parts: 1,
    window: 1,
    ...STORED[algorithm.name].numbers?.(algorithm),
  };
}

/** The places of {@link StoredAlgorithm}, each with the name of its algorithm. */
export const PLACES: ReadonlyMap<string, Algorithm['name']> = new Map(
  (Object.keys(STORED) as Algorithm['name'][]).flatMap((name) => {
    const { place } = STORED[name];
    return place === undefined ? [] : [[place, name]];
  }),
);

/** In Lua: the places by name, and how long the first suffix of a key is. */
export const PLACES_IN_LUA = ['local PLACES, SUFFIXES = {}, {}']
  .concat(
    [...PLACES].map(([place, name]) => {
      const [suffix = ''] = STORED[name].suffixes ?? [];
      return `PLACES.${name}, SUFFIXES.${name} = '${place}', ${suffix.length}`;
    }),
  )
  .join('\n');

/** In Lua: what the algorithm of a limit does at a point of the script. */
export function byAlgorithm(part: Part): string {
  const branches = Object.entries(STORED).flatMap(([name, { [part]: lines }]) => {
    return lines === undefined ? [] : `if algorithm == '${name}' then${lines}`;
  });
  return `${branches.join('\nelse')} end`;
}
