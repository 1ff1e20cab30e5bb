import { dogstatsdLines } from '../../../../src/sinks/statistics/lines/dogstatsd-lines';
import { nameTags } from '../../../../src/sinks/statistics/lines/line-format';
import { jsonLines } from '../../../../src/sinks/statistics/lines/json-lines';
import { compileRe2 } from '../../../../src/sinks/statistics/mapping/re2';
import { statsdLines } from '../../../../src/sinks/statistics/lines/statsd-lines';

const NAME = 'ratelimit.service.rate_limit.shop.user_a_b.total_hits';
const EXTRA = nameTags({ stage: 'prod', az: 'eu.west:1|a', none: '' });

describe('nameTags', () => {
  it('replaces delimiters and omits tags without a value', () => {
    expect(EXTRA).toEqual({ stage: 'prod', az: 'eu_west_1_a' });
    expect(nameTags({ none: '' })).toEqual({});
    expect(nameTags({ 'a|b.c': 'one\nevil:1|c' })).toEqual({ a_b_c: 'one_evil_1_c' });
  });
});

describe('every line format', () => {
  it.each([
    ['statsd', statsdLines({})],
    ['DogStatsD', dogstatsdLines({}, [])],
    ['JSON', jsonLines({}, () => 0)],
  ])('writes large numbers of hits without an exponent: %s', (_, lines) => {
    const digits = /[^\d]3000000000000000000000[^\d]/;
    expect(lines.counter('a', {}, 3e21)).toMatch(digits);
    expect(lines.gauge('a', {}, 3e21)).toMatch(digits);
  });
});

describe('statsdLines', () => {
  it('writes name, value and type when there are no tags', () => {
    const lines = statsdLines(nameTags({}));
    expect(lines.counter(NAME, {}, 3)).toBe(`${NAME}:3|c`);
    expect(lines.gauge('a.b', {}, 0.5)).toBe('a.b:0.5|g');
    expect(lines.timer('a.t', 12.9, 1)).toBe('a.t:12|ms');
  });

  it('appends the sorted tags to the name of every statistic', () => {
    const lines = statsdLines(EXTRA);
    expect(lines.counter(NAME, {}, 3)).toBe(`${NAME}.__az=eu_west_1_a.__stage=prod:3|c`);
    expect(lines.counter('multiget', { code: 'success' }, 1)).toBe(
      'multiget.__az=eu_west_1_a.__code=success.__stage=prod:1|c',
    );
    expect(lines.gauge('a.b', {}, 7)).toBe('a.b.__az=eu_west_1_a.__stage=prod:7|g');
    expect(lines.gauge('info', { version: '1.2.3' }, 1)).toBe('info.__az=eu_west_1_a.__stage=prod.__version=1_2_3:1|g');
    expect(lines.timer('a.t', 0.7, 1)).toBe('a.t.__az=eu_west_1_a.__stage=prod:0|ms');
  });

  it('writes the sample rate of a duration', () => {
    expect(statsdLines({}).timer('a.t', 3, 0.25)).toBe('a.t:3|ms|@0.25');
  });
});

describe('dogstatsdLines', () => {
  it('writes the sorted tags at the end of the line', () => {
    const lines = dogstatsdLines(EXTRA, []);
    expect(lines.counter(NAME, {}, 3)).toBe(`${NAME}:3|c|#az:eu_west_1_a,stage:prod`);
    expect(lines.counter('multiget', { code: 'success' }, 1)).toBe(
      'multiget:1|c|#az:eu_west_1_a,code:success,stage:prod',
    );
    expect(lines.counter('multiget', { code: 'error' }, 1)).toBe('multiget:1|c|#az:eu_west_1_a,code:error,stage:prod');
    expect(lines.gauge('a.b', {}, 7)).toBe('a.b:7|g|#az:eu_west_1_a,stage:prod');
    expect(lines.gauge('info', { version: '1.2.3' }, 1)).toBe('info:1|g|#az:eu_west_1_a,stage:prod,version:1.2.3');
    expect(lines.timer('a.t', 1, 0.5)).toBe('a.t:1|ms|@0.5|#az:eu_west_1_a,stage:prod');
    expect(dogstatsdLines({}, []).counter('a', {}, 1)).toBe('a:1|c');
  });

  function mogrifier(pattern: string, output: string, tags: Readonly<Record<string, string>> = {}) {
    return {
      pattern: compileRe2(pattern),
      output,
      tags,
    };
  }

  it('takes name and tags from the first mogrifier that matches', () => {
    const lines = dogstatsdLines({ stage: 'prod' }, [
      mogrifier('^nothing$', 'wrong'),
      mogrifier(
        String.raw`^ratelimit\.service\.rate_limit\.(?P<domain>[^.]+)\.(.*)\.([^.]+)$`,
        'ratelimit.service.rate_limit.$3',
        { domain: '$1', descriptor: '$2' },
      ),
      mogrifier('total', 'too late'),
    ]);
    const hits = 'ratelimit.service.rate_limit.total_hits';
    const tags = '#descriptor:user_a_b,domain:shop,stage:prod';
    expect(lines.counter(NAME, {}, 3)).toBe(`${hits}:3|c|${tags}`);
    expect(lines.counter(NAME, {}, 4)).toBe(`${hits}:4|c|${tags}`);
    expect(lines.counter('other', {}, 1)).toBe('other:1|c|#stage:prod');
  });

  it.each([
    ['matches unanchored', 'user_(.)_', 'x.$1', 'x.a'],
    ['expands $0 to the whole match', 'user_a', '[$0]', '[user_a]'],
    ['keeps a number without a group as written', '(user)', '$1.$2.$12', 'user.$2.$12'],
    ['expands a reference in braces', '(user)', '${1}s', 'users'],
    ['expands a named group', '(?P<who>user)', '${who}', 'user'],
    ['matches any case with the flag i', '(?i)(USER)', '$1', 'user'],
    ['expands a group that did not participate to an empty string', '(none)?(user)', '$1-$2', '-user'],
  ])('a mogrifier %s', (_, pattern, output, name) => {
    expect(dogstatsdLines({}, [mogrifier(pattern, output)]).counter(NAME, {}, 1)).toBe(`${name}:1|c`);
  });

  it('replaces delimiters in values that a caller sent', () => {
    const lines = dogstatsdLines({}, [mogrifier('(?s)user_(.*)', 'x:$1|y', { 'k:,#@|': '$1' })]);
    const line = lines.counter('user_a,b|c\nd:1', {}, 1);
    expect(line).toBe('x_a,b_c_d_1_y:1|c|#k_____:a_b_c_d:1');
  });
});

describe('dogstatsdLines for tag values that a caller sent', () => {
  it('keeps the series of different values apart', () => {
    const lines = dogstatsdLines({}, [{ pattern: compileRe2('user_(.*)'), output: 'hits', tags: { user: '$1' } }]);
    const values = ['a@b.c', 'a#b.c', 'a:b.c', 'a_b.c', 'a b.c'];
    expect(values.map((value) => lines.counter(`user_${value}`, {}, 1))).toEqual(
      values.map((value) => `hits:1|c|#user:${value}`),
    );
  });
});

describe('jsonLines', () => {
  const lines = jsonLines(nameTags({ az: 'eu' }), () => 1_700_000_000_250);

  it('writes the members and messages of the Go service', () => {
    expect(lines.counter(NAME, {}, 3)).toBe(
      `{"level":"debug","ts":1700000000.25,"logger":"gostats.loggingsink","msg":"flushing counter",` +
        `"json":{"name":"${NAME}.__az=eu","type":"counter","value":"3.000000"}}`,
    );
  });

  it('writes gauges and durations', () => {
    expect(JSON.parse(lines.gauge('g', {}, 0.25))).toMatchObject({
      msg: 'flushing gauge',
      json: { name: 'g.__az=eu', type: 'gauge', value: '0.250000' },
    });
    expect(JSON.parse(lines.gauge('info', { version: '1.2' }, 1))).toMatchObject({
      json: { name: 'info.__az=eu.__version=1_2', value: '1.000000' },
    });
    expect(JSON.parse(lines.timer('t', 1.25, 0.5))).toMatchObject({
      msg: 'flushing timer',
      json: { name: 't.__az=eu', type: 'timer', value: '1.250000', rate: '0.5' },
    });
  });

  it('writes one line for any value that a caller sent', () => {
    const line = lines.counter('a\n"\u2028\ud800', {}, 1);
    expect(line).not.toMatch(/\n/);
    expect(JSON.parse(line)).toMatchObject({ json: { name: 'a\n"\u2028\ud800.__az=eu' } });
  });
});
