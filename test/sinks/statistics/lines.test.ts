import { type LineFormat, dogstatsdLines, jsonLines, nameTags, statsdLines } from '../../../src/sinks/statistics/lines';
import type { Tags } from '../../../src/statistics/tags';
import { compileRe2 } from '../../../src/text/re2';

/** Makes the line of each type of statistic. */
function linesIn(format: LineFormat) {
  return {
    counter: (name: string, tags: Tags, value: number) => format({ type: 'counter', name, tags, value }),
    gauge: (name: string, tags: Tags, value: number) => format({ type: 'gauge', name, tags, value }),
    timer: (name: string, value: number, rate: number) => format({ type: 'timer', name, tags: {}, value, rate }),
  };
}

function statsd(...args: Parameters<typeof statsdLines>) {
  return linesIn(statsdLines(...args));
}

function dogstatsd(...args: Parameters<typeof dogstatsdLines>) {
  return linesIn(dogstatsdLines(...args));
}

function json(...args: Parameters<typeof jsonLines>) {
  return linesIn(jsonLines(...args));
}

const NAME = 'ratelimit.service.rate_limit.shop.user_a_b.total_hits';
const EXTRA = nameTags({ stage: 'prod', az: 'eu.west:1|a', none: '' });

it('EXTRA_TAGS in names have their delimiters replaced, and are omitted without a value', () => {
  expect(EXTRA).toEqual({ stage: 'prod', az: 'eu_west_1_a' });
  expect(nameTags({ 'a|b.c': 'one\nevil:1|c' })).toEqual({ a_b_c: 'one_evil_1_c' });
});

describe('every line format', () => {
  it.each([
    ['statsd', statsd({})],
    ['DogStatsD', dogstatsd({}, [])],
    ['JSON', json({}, () => 0)],
  ])('writes large numbers of hits without an exponent: %s', (_, lines) => {
    const digits = /[^\d]3000000000000000000000[^\d]/;
    expect(lines.counter('a', {}, 3e21)).toMatch(digits);
    expect(lines.gauge('a', {}, 3e21)).toMatch(digits);
  });
});

describe('a statsd line', () => {
  it('consists of name, value and type, and of the sample rate of a duration', () => {
    const lines = statsd({});
    expect(lines.counter(NAME, {}, 3)).toBe(`${NAME}:3|c`);
    expect(lines.gauge('a.b', {}, 0.5)).toBe('a.b:0.5|g');
    expect(lines.timer('a.t', 12.9, 1)).toBe('a.t:12|ms');
    expect(lines.timer('a.t', 3, 0.25)).toBe('a.t:3|ms|@0.25');
  });

  it('has the sorted tags in its name', () => {
    const lines = statsd(EXTRA);
    const tags = '.__az=eu_west_1_a.__code=success.__stage=prod';
    expect(lines.counter('multiget', { code: 'success' }, 1)).toBe(`multiget${tags}:1|c`);
    expect(lines.gauge('info', { code: '1.2.3' }, 7)).toBe(`info${tags.replace('success', '1_2_3')}:7|g`);
    expect(lines.timer('a.t', 0.7, 1)).toBe('a.t.__az=eu_west_1_a.__stage=prod:0|ms');
  });
});

describe('a DogStatsD line', () => {
  it('has the sorted tags at its end', () => {
    const lines = dogstatsd(EXTRA, []);
    expect(lines.counter(NAME, {}, 3)).toBe(`${NAME}:3|c|#az:eu_west_1_a,stage:prod`);
    for (const code of ['success', 'error']) {
      expect(lines.counter('get', { code }, 1)).toBe(`get:1|c|#az:eu_west_1_a,code:${code},stage:prod`);
    }
    expect(lines.gauge('info', { version: '1.2.3' }, 1)).toBe('info:1|g|#az:eu_west_1_a,stage:prod,version:1.2.3');
    expect(lines.timer('a.t', 1, 0.5)).toBe('a.t:1|ms|@0.5|#az:eu_west_1_a,stage:prod');
    expect(dogstatsd({}, []).counter('a', {}, 1)).toBe('a:1|c');
  });

  function mogrifier(pattern: string, output: string, tags: Readonly<Record<string, string>> = {}) {
    return { pattern: compileRe2(pattern), output, tags };
  }

  it('takes name and tags from the first mogrifier that matches', () => {
    const rule = String.raw`^ratelimit\.service\.rate_limit\.(?P<domain>[^.]+)\.(.*)\.([^.]+)$`;
    const lines = dogstatsd({ stage: 'prod' }, [
      mogrifier('^nothing$', 'wrong'),
      mogrifier(rule, 'ratelimit.service.rate_limit.$3', { domain: '$1', descriptor: '$2' }),
      mogrifier('total', 'too late'),
    ]);
    const tags = '#descriptor:user_a_b,domain:shop,stage:prod';
    // The second time from its memory.
    for (const hits of [3, 4]) {
      expect(lines.counter(NAME, {}, hits)).toBe(`ratelimit.service.rate_limit.total_hits:${hits}|c|${tags}`);
    }
    expect(lines.counter('other', {}, 1)).toBe('other:1|c|#stage:prod');
  });

  it.each([
    ['matches unanchored, and expands $0 to the whole match', 'user_a', '[$0]', '[user_a]'],
    ['keeps a number without a group as written', '(user)', '$1.$2.$12', 'user.$2.$12'],
    ['expands a number and a name in braces', '(?P<who>user)', '${who}${1}s', 'userusers'],
    ['expands a group that did not participate to an empty string', '(none)?(user)', '$1-$2', '-user'],
  ])('has a name from a mogrifier that %s', (_, pattern, output, name) => {
    expect(dogstatsd({}, [mogrifier(pattern, output)]).counter(NAME, {}, 1)).toBe(`${name}:1|c`);
  });

  it('has its name matched once, unless there are too many of them to keep', () => {
    let matched = 0;
    const counting = { source: '', exec: () => ((matched += 1), null) };
    const lines = dogstatsd({}, [{ pattern: counting, output: '', tags: {} }]);
    for (const [names, expected] of [
      [50_000, 50_000],
      [100_000, 150_000],
    ] as const) {
      matched = 0;
      for (let flush = 0; flush < 2; flush += 1) {
        for (let name = 0; name < names; name += 1) lines.counter(`k${name}`, {}, 1);
      }
      expect(matched).toBe(expected);
    }
  });

  it('has no delimiters from a caller, but keeps the series of different values apart', () => {
    const hostile = dogstatsd({}, [mogrifier('(?s)user_(.*)', 'x:$1|y', { 'k:,#@|': '$1' })]);
    expect(hostile.counter('user_a,b|c\nd:1', {}, 1)).toBe('x_a,b_c_d_1_y:1|c|#k_____:a_b_c_d:1');
    const lines = dogstatsd({}, [mogrifier('user_(.*)', 'hits', { user: '$1' })]);
    for (const value of ['a@b.c', 'a#b.c', 'a:b.c', 'a_b.c', 'a b.c']) {
      expect(lines.counter(`user_${value}`, {}, 1)).toBe(`hits:1|c|#user:${value}`);
    }
  });
});

describe('a JSON line', () => {
  const lines = json(nameTags({ az: 'eu' }), () => 1_700_000_000_250);

  it('has the members and messages of the Go service', () => {
    expect(lines.counter(NAME, {}, 3)).toBe(
      `{"level":"debug","ts":1700000000.25,"logger":"gostats.loggingsink","msg":"flushing counter",` +
        `"json":{"name":"${NAME}.__az=eu","type":"counter","value":"3.000000"}}`,
    );
    expect(JSON.parse(lines.gauge('info', { version: '1.2' }, 0.25))).toMatchObject({
      msg: 'flushing gauge',
      json: { name: 'info.__az=eu.__version=1_2', type: 'gauge', value: '0.250000' },
    });
    expect(JSON.parse(lines.timer('t', 1.25, 0.5))).toMatchObject({
      msg: 'flushing timer',
      json: { name: 't.__az=eu', type: 'timer', value: '1.250000', rate: '0.5' },
    });
  });

  it('is one line for any value that a caller sent', () => {
    const line = lines.counter('a\n"\u2028\ud800', {}, 1);
    expect(line).not.toMatch(/\n/);
    expect(JSON.parse(line)).toMatchObject({ json: { name: 'a\n"\u2028\ud800.__az=eu' } });
  });
});
