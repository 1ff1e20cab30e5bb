import { socketPath } from '../../src/settings/values/socket-path';
import { boolean, choice, logFormat } from '../../src/settings/values/choices';
import { grpcHeaders, list, pairs } from '../../src/settings/values/lists';
import {
  grpcTarget,
  hostName,
  isStoreAddress,
  listenAddress,
  statisticsHost,
} from '../../src/settings/values/addresses';
import { messageSize, ratio, workers } from '../../src/settings/values/numbers';
import { headerName } from '../../src/settings/values/text';
import { parseValue } from './parse-value';

describe('boolean', () => {
  test.each(['1', 't', 'T', 'true', 'TRUE', 'tRUE'])('parses %s as true', (text) => {
    expect(parseValue(boolean, text)).toBe(true);
  });
  test.each(['0', 'f', 'F', 'false', 'False'])('parses %s as false', (text) => {
    expect(parseValue(boolean, text)).toBe(false);
  });
  test.each(['yes', 'no', 'on', 'off', '2', 'truthy', 'constructor'])('rejects %s', (text) => {
    expect(parseValue(boolean, text)).toBe('rejected');
  });
});

describe('choice', () => {
  const type = choice({ memory: [], kvstore: ['redis'] });
  test('accepts its words and their synonyms in any case', () => {
    expect(['memory', 'KVSTORE', 'Redis'].map((text) => parseValue(type, text))).toEqual([
      'memory',
      'kvstore',
      'kvstore',
    ]);
  });
  test('rejects other words and lists the allowed ones', () => {
    expect(parseValue(type, 'mongo')).toBe('rejected');
    expect(type.allowed).toBe('memory, kvstore (redis)');
  });
});

describe('ratio', () => {
  const type = ratio({ min: 0, max: 1 });
  test.each([
    ['0', 0],
    ['1', 1],
    ['0.8', 0.8],
    ['.5', 0.5],
    ['1.', 1],
    ['8e-1', 0.8],
    ['+0.5', 0.5],
    ['0.1_5', 0.15],
    ['0x1p-1', 0.5],
    ['0x.8p0', 0.5],
  ])('parses %s as %d', (text, number) => {
    expect(parseValue(type, text)).toBe(number);
  });
  test.each(['1.01', '-0.1', 'nan', 'inf', 'Infinity', '80%', '0,8', '0.8x', '_1', '1e', '0x1'])(
    'rejects %s',
    (text) => {
      expect(parseValue(type, text)).toBe('rejected');
    },
  );
  test('accepts only finite numbers when it has no maximum', () => {
    expect(parseValue(ratio({ min: 0 }), '1e308')).toBe(1e308);
    expect(parseValue(ratio({ min: 0 }), '1e309')).toBe('rejected');
  });
});

describe('list', () => {
  test('splits the text at commas and trims the items', () => {
    expect(parseValue(list('names'), 'a, b ,c')).toEqual(['a', 'b', 'c']);
  });
  test('rejects empty items: the Go service would treat the last one of "a:1," as a server', () => {
    expect(list('servers').parse('a:1,')).toEqual({ rejected: true, hint: 'item 2 is empty' });
  });
  test('reports which item is invalid', () => {
    expect(list('digits', (item) => /^\d$/.test(item)).parse('1,x')).toEqual({
      rejected: true,
      hint: 'item 2 is invalid',
    });
  });
});

describe('pairs', () => {
  const type = pairs({ separator: ':', emptyValues: 'allowed' });
  test('splits the text at commas, and each item at its first separator', () => {
    expect(parseValue(type, 'env:prod, url : http://a:1')).toEqual({ env: 'prod', url: 'http://a:1' });
  });
  test('accepts any key unchanged', () => {
    expect(Object.entries(parseValue(type, '__proto__:x'))).toEqual([['__proto__', 'x']]);
  });
  test('accepts empty values only if they are allowed', () => {
    expect(parseValue(type, 'a:')).toEqual({ a: '' });
    expect(pairs({ separator: ':', emptyValues: 'rejected' }).parse('a:')).toEqual({
      rejected: true,
      hint: 'item 1 has no value after the ":"',
    });
  });
  test.each([
    ['a', 'item 1 has no ":"'],
    ['a:1,b', 'item 2 has no ":"'],
    [':1', 'item 1 has no key before the ":"'],
    ['a:1,', 'item 2 is empty'],
  ])('rejects %j and reports why without quoting it', (text, hint) => {
    expect(type.parse(text)).toEqual({ rejected: true, hint });
  });
  test('uses the last value of a repeated key, with a notice', () => {
    expect(type.parse('a:1,a:2')).toEqual({
      value: { a: '2' },
      notice: 'item 2 repeats a key; its last value is used',
    });
  });
});

describe('grpcHeaders', () => {
  test('accepts colons in values', () => {
    expect(parseValue(grpcHeaders, 'authorization:Bearer a:b,x-team:edge')).toEqual({
      authorization: 'Bearer a:b',
      'x-team': 'edge',
    });
  });
  test.each([
    'x team:a',
    'grpc-timeout:1S',
    'x-name:Zoë',
    'Connection:close',
    'transfer-encoding:chunked',
    'te:trailers',
  ])('rejects %j', (text) => {
    expect(parseValue(grpcHeaders, text)).toBe('rejected');
  });
});

describe('grpcTarget', () => {
  test.each([
    'localhost:18000',
    '[::1]:18000',
    'dns:///xds:80',
    'dns://8.8.8.8/xds:80',
    'dns:xds:80',
    'unix:/run/xds',
    'unix:xds',
  ])('accepts %s', (target) => expect(parseValue(grpcTarget, target)).toBe(target));
  test.each([
    'localhost',
    ':18000',
    'http://a:1',
    'xds:///a:1',
    'passthrough:///a:1',
    'a:99999',
    'unix:',
    'a b:1',
    'dns:///a',
  ])('rejects %s', (target) => expect(parseValue(grpcTarget, target)).toBe('rejected'));
});

describe('hostName', () => {
  test.each(['0.0.0.0', 'localhost', 'statsd.monitoring.svc', '::', '::1', 'fe80::1%eth0'])('accepts %s', (text) => {
    expect(parseValue(hostName, text)).toBe(text);
  });
  test.each(['localhost:8080', '1.2.3.4:80', '[::1]', 'http://a', 'a b', 'a/b'])('rejects %s', (text) => {
    expect(parseValue(hostName, text)).toBe('rejected');
  });
});

describe('socketPath', () => {
  const longest = process.platform === 'linux' ? 107 : 103;

  test.each([`/${'x'.repeat(longest - 1)}`, 'relative.sock'])('accepts %s', (path) => {
    expect(parseValue(socketPath, path)).toBe(path);
  });

  test.each([`/${'x'.repeat(longest)}`, `/${'é'.repeat(longest / 2)}x`])('rejects %s and states the limit', (path) => {
    expect(socketPath.parse(path)).toEqual({
      rejected: true,
      hint: `the path of a socket may have at most ${longest} bytes on this system`,
    });
  });
});

describe('statisticsHost', () => {
  test.each([
    ['localhost', { host: 'localhost' }],
    ['::1', { host: '::1' }],
    ['unix-01.example', { host: 'unix-01.example' }],
    ['unix:///var/run/datadog/dsd.socket', { socketPath: '/var/run/datadog/dsd.socket', socketType: 'datagram' }],
    ['unixstream:///var/run/datadog/dsd.socket', { socketPath: '/var/run/datadog/dsd.socket', socketType: 'stream' }],
    [`unix:///${'a'.repeat(106)}`, { socketPath: `/${'a'.repeat(106)}`, socketType: 'datagram' }],
  ] as const)('can be %s', (text, value) => {
    expect(parseValue(statisticsHost, text)).toEqual(value);
    expect(statisticsHost.format(value)).toBe(text);
  });
  it('accepts unixgram:// for a datagram socket', () => {
    const socket = { socketPath: '/run/dsd.socket', socketType: 'datagram' };
    expect(parseValue(statisticsHost, 'unixgram:///run/dsd.socket')).toEqual(socket);
  });
  test.each([
    'localhost:8125',
    'unixstream://',
    'unixstream://run/dsd.socket',
    'unixstream:///run/',
    'unix://run/dsd.socket',
    'unix:///',
    `unix:///${'é'.repeat(54)}`,
    'udp://localhost:8125',
  ])('rejects %s', (text) => expect(parseValue(statisticsHost, text)).toBe('rejected'));
  test.each(['/run/dsd.socket', 'unix:/run/dsd.socket'])('rejects %s with a hint on how to write it', (text) => {
    expect(statisticsHost.parse(text)).toEqual({
      rejected: true,
      hint: 'write a socket as unix:///path or unixstream:///path',
    });
  });
});

describe('listenAddress', () => {
  test.each([
    [':9090', { host: '0.0.0.0', port: 9090 }],
    ['localhost:9090', { host: 'localhost', port: 9090 }],
    ['[::1]:9090', { host: '::1', port: 9090 }],
  ])('parses %s', (text, address) => {
    expect(parseValue(listenAddress, text)).toEqual(address);
    expect(listenAddress.format(address)).toBe(text);
  });
  test.each(['localhost', '::1:9090', ':65536', ':', 'http://a:1'])('rejects %s', (text) => {
    expect(parseValue(listenAddress, text)).toBe('rejected');
  });
  test('rejects a port alone with a hint on how to write it', () => {
    expect(listenAddress.parse('9090')).toEqual({
      rejected: true,
      hint: 'write a port alone as :port',
    });
  });
});

describe('isStoreAddress', () => {
  test.each([
    'localhost:6379',
    '[::1]:6379',
    '/var/run/redis.sock',
    'unix:///var/run/redis.sock',
    'redis://localhost',
    'redis://user:secret@host:6379/1',
    'rediss://:secret@host',
  ])('accepts %s', (text) => {
    expect(isStoreAddress(text)).toBe(true);
  });
  test.each(['localhost', ':6379', 'localhost:0', 'localhost:65536', 'http://localhost:6379', 'redis://', 'a:1,b:2'])(
    'rejects %s',
    (text) => {
      expect(isStoreAddress(text)).toBe(false);
    },
  );
});

test('headerName accepts HTTP tokens and preserves their case', () => {
  expect(parseValue(headerName, 'x-RateLimit-Limit')).toBe('x-RateLimit-Limit');
  expect(['X Limit', 'X-Limit:', 'X-Límit', 'X(1)'].map((text) => parseValue(headerName, text))).toEqual(
    Array(4).fill('rejected'),
  );
});

test('workers accepts a whole number from 1 to 256, or auto in any case', () => {
  expect(['1', '256', 'auto', 'AUTO', '0', '257', 'many'].map((text) => parseValue(workers, text))).toEqual([
    1,
    256,
    'auto',
    'auto',
    'rejected',
    'rejected',
    'rejected',
  ]);
});

test('messageSize parses 0 as the default of gRPC', () => {
  expect(['0', '1000'].map((text) => parseValue(messageSize, text))).toEqual([4_194_304, 1000]);
});

test('logFormat parses an unknown format as text, like the Go service, with a notice', () => {
  expect(parseValue(logFormat, 'JSON')).toBe('json');
  expect(logFormat.parse('xml')).toEqual({ value: 'text', notice: 'every value other than json means text' });
});
