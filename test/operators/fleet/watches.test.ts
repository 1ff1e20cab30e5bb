import type { Decision } from '../../../src/limiter/decision';
import { MOST_WATCHES, WATCHED_MS, Watches } from '../../../src/operators/fleet/watches';
import type { DecisionLog } from '../../../src/streams/in-flight-decision';
import { descriptor } from '../../support/data/requests';
import { type RuleSketch, rulesetOf } from '../../support/data/rules';
import { TestService } from '../../support/data/service';
import { call, perMinute } from '../../limiter/serve';

const START = 1_699_920_010_000;

beforeEach(() => jest.useFakeTimers({ now: START }));
afterEach(() => jest.useRealTimers());

/** A service whose callers can be watched, and what logs its decisions at present. */
function watching(rules: readonly RuleSketch[] = [{ key: 'user', rateLimit: perMinute(2) }], log?: DecisionLog) {
  const service = new TestService(rulesetOf('shop', ...rules), {}, START, 0);
  const logs: (DecisionLog | undefined)[] = [];
  const watches = new Watches(log, (next) => {
    logs.push(next);
    service.logTo(next);
  });
  function read(text: string, domain = 'shop') {
    return watches.read({ domain, entries: descriptor(text).entries });
  }
  function wait(seconds: number): void {
    jest.advanceTimersByTime(seconds * 1_000);
    service.now += seconds * 1_000;
  }
  return { service, watches, logs, read, wait };
}

it('calls of a caller that is watched are counted by the second, with those that are denied, and no others', () => {
  const { service, read, wait } = watching();
  expect(read('user=ann')).toEqual({ times: [], calls: [], denied: [] });
  call(service, 'user=ann');
  wait(1);
  call(service, 'user=bob', 'user=ann');
  call(service, 'user=bob');
  wait(1);
  for (let made = 0; made < 3; made += 1) call(service, 'user=ann');
  call(service, 'user=ann', 'path=x');
  wait(1);
  const second = START / 1_000;
  expect(read('user=ann')).toEqual({ times: [second + 1, second + 2], calls: [1, 4], denied: [0, 4] });
  wait(59);
  const { times, calls } = read('user=ann')!;
  expect([times.length, times.at(-1), calls]).toEqual([60, second + 61, [4, ...Array(59).fill(0)]]);
});

it('a caller is watched as it was sent, and as it is counted: by network, or by the pattern of a rule', () => {
  const path = { key: 'path', value: '/a/*', shareThreshold: true, rateLimit: perMinute(9) };
  const ip = { key: 'ip', addressPrefix: { ipv4: 8, ipv6: 64 }, rateLimit: perMinute(9) };
  const { service, read, wait } = watching([path, ip]);
  const watched = ['path=/a/*', 'path=/a/1', 'ip=10.0.0.0/8', 'ip=10.1.2.3', 'other=x'];
  watched.forEach((text) => read(text));
  wait(1);
  call(service, 'path=/a/1');
  call(service, 'path=/a/2');
  call(service, 'ip=10.1.2.3');
  call(service, 'ip=10.1.2.4');
  call(service, 'other=x');
  wait(1);
  expect(watched.map((text) => read(text)!.calls)).toEqual([[2], [1], [2], [1], [1]]);
});

it('decisions go to their log alone while no caller is watched, and to it as well while there is one', () => {
  const logged: Decision[] = [];
  const log: DecisionLog = {
    decided: (decision) => logged.push(decision),
    rejected: () => undefined,
    ended: () => undefined,
  };
  const { service, watches, logs, read, wait } = watching(undefined, log);
  expect(watches.log).toBe(log);
  read('user=ann');
  expect(watches.log).toBe(watches);
  call(service, 'user=ann');
  expect(logged).toHaveLength(1);
  wait(WATCHED_MS / 1_000 - 1);
  read('user=ann');
  wait(WATCHED_MS / 1_000 - 1);
  expect(watches.log).toBe(watches);
  wait(1);
  expect([watches.log, logs]).toEqual([log, [watches, log]]);
});

it('16 callers are watched at most; one that was not asked for in ten minutes makes room', () => {
  const { read, wait, logs } = watching();
  for (let number = 0; number < MOST_WATCHES; number += 1) expect(read(`user=${number}`)).toBeDefined();
  expect([read('user=more'), read('user=0', 'other')]).toEqual([undefined, undefined]);
  wait(300);
  expect(read('user=1')).toBeDefined();
  wait(301);
  expect(read('user=more')).toBeDefined();
  wait(601);
  expect(logs.at(-1)).toBeUndefined();
});
