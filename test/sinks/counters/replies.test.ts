import { algorithmOf } from '../../../src/counting/limit';
import type { Operation } from '../../../src/counting/operation';
import { CountCall } from '../../../src/sinks/counters/kvstore/count-call';
import { TtlCache } from '../../../src/sinks/counters/kvstore/ttl-cache';
import { checkedReply } from '../../../src/sinks/counters/kvstore/replies';
import { allOrNothingGroup, operation } from '../../support/data/operations';

const NOW = 1_795_941_636_609_000;
const [MOST, HITS] = [Number.MAX_SAFE_INTEGER, 2 ** 32];

function limited(name: 'fixed_window' | 'sliding_window' | 'token_bucket', requestsPerUnit = 10): Operation {
  const algorithm = algorithmOf({ name, requestsPerUnit, lengthSeconds: 60, burst: undefined });
  const group = name === 'fixed_window' ? allOrNothingGroup() : undefined;
  return operation('k', 1, { limit: requestsPerUnit, algorithm, group });
}

/** The reply to a script call with one operation, as it is read. */
function read(each: Operation, reply: unknown) {
  const [known, knownStates] = [new TtlCache(), new TtlCache(true)];
  return new CountCall([each], { jitter: 0, isAsking: false, known, knownStates }).read(reply, 'evalsha');
}

describe('the reply to a script call', () => {
  it.each([
    [operation('k', 1), [5], [5]],
    [operation('k', 1), [2 ** 63], [MOST]],
    [operation('k', 1), [-(2 ** 63)], [-MOST]],
    [limited('sliding_window'), [3, 2, NOW], [{ current: 3, previous: 2, now: NOW }]],
    [limited('token_bucket', 7), [1, 6, NOW], [{ whole: 1, part: 6, parts: 7, now: NOW }]],
    [limited('fixed_window'), [2 ** 60, 0, NOW], [{ current: MOST, previous: 0, now: NOW }]],
  ])('is a count, which saturates, or a state: %#', (each, reply, results) => {
    expect(read(each, reply)).toEqual(results);
  });

  const notMatching = 'the reply to EVALSHA does not match the call';
  const noNumber = 'the reply to EVALSHA is neither a number nor an error';
  const noTime = 'the reply to EVALSHA has a time that no clock shows';
  const noState = 'the reply to EVALSHA has a state that the limit cannot have';
  it.each<readonly [each: Operation, reply: unknown, message: string]>([
    [operation('k', 1), null, notMatching],
    [operation('k', 1), 'OK', notMatching],
    [operation('k', 1), 5, notMatching],
    [operation('k', 1), [], notMatching],
    [operation('k', 1), [5, 5], notMatching],
    ...[NaN, Infinity, -Infinity, 0.5, null, '5', [5], Buffer.from('5')].map(
      (value) => [operation('k', 1), [value], noNumber] as const,
    ),
    [limited('sliding_window'), [NOW, 2, 3], noTime],
    [limited('sliding_window'), [3, 2, 0], noTime],
    [limited('sliding_window'), [3, 2, MOST], noTime],
    [limited('sliding_window'), [3, 2, new Error('x')], noTime],
    [limited('sliding_window'), [-1, 2, NOW], noState],
    [limited('sliding_window'), [3, -2, NOW], noState],
    [limited('sliding_window'), [HITS, 2, NOW], noState],
    [limited('sliding_window'), [3, HITS, NOW], noState],
    [limited('sliding_window'), [3, new Error('x'), NOW], noState],
    [limited('token_bucket', 7), [-1, 0, NOW], noState],
    [limited('token_bucket', 7), [1, 7, NOW], noState],
    [limited('token_bucket', 7), [1, -1, NOW], noState],
    [limited('token_bucket', 7), [60_000_000, 1, NOW], noState],
    [limited('token_bucket', 7), [NOW, 0, NOW], noState],
    [limited('fixed_window'), [3, 2, NOW], noState],
  ])('is not used when the call cannot have it: %#', (each, reply, message) => {
    expect(() => read(each, reply)).toThrow(message);
  });

  it.each([-1, 1, 10, 13, 21, 0.5, NaN, new Error('x')])(
    'grants no %p hits when these were not to be had',
    (granted) => {
      const each = operation('k', 1, { limit: 200 });
      each.lease = { wants: 20, milliseconds: 250, sentAt: 0, granted: 0 };
      expect(() => read(each, [41, granted])).toThrow(/grants hits|neither a number/);
      expect([each.lease.granted, read(each, [41, 9]), each.lease.granted]).toEqual([0, [41], 9]);
    },
  );
});

describe('the reply to a command', () => {
  const TEXTS = ['', 'OK', 'PONG', 'x', '5'];
  const ANYTHING = [0, 1, -1, -3, 0.5, NaN, 2 ** 53, null, ...TEXTS, [], ['pong'], [0], [['x']], ['x']];
  const RANGE = [0, 16_383, ['127.0.0.1', 6379]];
  it.each<readonly [name: string, args: readonly string[], allowed: readonly unknown[]]>([
    ['AUTH', [], ['OK']],
    ['SELECT', [], ['OK']],
    ['PING', [], ['PONG', ['pong']]],
    ['ROLE', [], ['x', 'pong'].map((role) => [role])],
    ['GET', [], [null, ...TEXTS]],
    ['SET', [], ['OK', null]],
    ['DEL', [], [0, 1]],
    ['EXPIRE', [], [0, 1]],
    ['PUBLISH', [], [0, 1]],
    ['ZCOUNT', [], [0, 1]],
    ['TTL', [], [0, 1, -1, 2 ** 53]],
    ['INCRBY', [], [0, 1, -1, -3, 2 ** 53]],
    ['DECRBY', [], [0, 1, -1, -3, 2 ** 53]],
    ['ZRANGEBYSCORE', [], [[]]],
    ['EVALSHA', [], [[], ['pong'], [0], ['x']]],
    ['SENTINEL', ['get-master-addr-by-name'], [null, [], ['pong'], ['x']]],
    ['SENTINEL', ['sentinels'], [null, [], [['x']]]],
    ['CLUSTER', ['SLOTS'], [[]]],
  ])('%s %j is one of its kind', (name, args, allowed) => {
    const fitting = ANYTHING.filter((reply) => {
      try {
        return checkedReply(name, args, reply) === reply;
      } catch {
        return false;
      }
    });
    expect(fitting).toEqual(expect.arrayContaining([...allowed]));
    expect(fitting.length).toBe(allowed.length);
  });

  it('to CLUSTER SLOTS has ranges with a first and a last slot', () => {
    expect(checkedReply('CLUSTER', ['SLOTS'], [RANGE])).toEqual([RANGE]);
    for (const range of [[1, 0, []], [-1, 5, []], [0, 1e300, []], ['0', 5, []], [0, 5, 'x'], 5, null])
      expect(() => checkedReply('CLUSTER', ['SLOTS'], [range])).toThrow('the reply to CLUSTER does not fit it');
  });
});
