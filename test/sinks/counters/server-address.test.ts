import { isServer, isSocketPath } from '../../../src/settings/values/addresses';
import { nameOf, parseServer } from '../../../src/sinks/counters/server-address';

describe('the address of a store server', () => {
  it.each([
    ['/run/memcached.sock', '/run/memcached.sock'],
    ['unix:/run/memcached.sock', '/run/memcached.sock'],
    ['unix:///run/memcached.sock', '/run/memcached.sock'],
    ['127.0.0.1:11211', '127.0.0.1:11211'],
    ['[::1]:11211', '[::1]:11211'],
  ])('%s is accepted by the settings and by the store', (text, name) => {
    expect(isServer(text) || isSocketPath(text)).toBe(true);
    expect(nameOf(parseServer(text))).toBe(name);
  });
});
