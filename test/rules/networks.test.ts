import { SocketAddress, isIP } from 'node:net';
import { type AddressPrefix, countedAddress } from '../../src/rules/networks';
import fc from '../support/data/properties';

const DEFAULT: AddressPrefix = { ipv4: 32, ipv6: 64 };

/** What is counted for texts that are separated by ` · `. */
function counted(texts: string, prefix: Partial<AddressPrefix> = {}): readonly string[] {
  return texts.split(' · ').map((text) => countedAddress(text, { ...DEFAULT, ...prefix }));
}

describe('an address is counted', () => {
  it.each([
    [
      '198.51.100.7',
      '198.51.100.7 · ::ffff:198.51.100.7 · ::FFFF:198.51.100.7 · ::ffff:c633:6407 · 0:0:0:0:0:ffff:c633:6407',
    ],
    [
      '198.51.100.7',
      '0000:0000:0000:0000:0000:ffff:198.51.100.7 · [::ffff:198.51.100.7]:443 · 198.51.100.7:51234 · 198.51.100.7:0',
    ],
    [
      '2001:db8:1:2::/64',
      '2001:db8:1:2:3:4:5:6 · 2001:DB8:1:2::1 · 2001:0db8:0001:0002:0000:0000:0000:0001 · 2001:db8:1:2:0:0:0:0',
    ],
    [
      '2001:db8:1:2::/64',
      '2001:db8:1:2:: · 2001:db8:1:2::198.51.100.7 · [2001:db8:1:2::1] · [2001:DB8:1:2::1]:8080 · 2001:db8:1:2:3:4:5::',
    ],
    ['2001:db8::/64', '2001:db8::1:8080'],
    ['::/64', ':: · ::1 · ::198.51.100.7 · ::ffff:0:198.51.100.7 · 0:0:0:0:0:fffe:c633:6407 · [::]'],
    ['64:ff9b::/64', '64:ff9b::198.51.100.7'],
  ])('as %s in the notations %s', (network, texts) => {
    expect(new Set(counted(texts))).toEqual(new Set([network]));
  });

  it.each<[texts: string, prefix: Partial<AddressPrefix>, network: string]>([
    ['198.51.100.7 · ::ffff:198.51.100.7 · [::ffff:c633:6408]:1 · 198.51.100.9:1', { ipv4: 24 }, '198.51.100.0/24'],
    ['198.51.100.7:9', { ipv4: 16 }, '198.51.0.0/16'],
    ['255.255.255.255', { ipv4: 1 }, '128.0.0.0/1'],
    ['2001:DB8::0001', { ipv6: 128 }, '2001:db8::1'],
    ['2001:db8:0:0:1:0:0:1', { ipv6: 128 }, '2001:db8::1:0:0:1'],
    ['2001:db8:0:1:1:1:1:1', { ipv6: 128 }, '2001:db8:0:1:1:1:1:1'],
    ['1:0:0:2:0:0:0:3', { ipv6: 128 }, '1:0:0:2::3'],
    ['::198.51.100.7', { ipv6: 128 }, '::c633:6407'],
    ['::', { ipv6: 128 }, '::'],
    ['2001:db8:1:2::ffff', { ipv6: 127 }, '2001:db8:1:2::fffe/127'],
    ['2001:db8:1:2f::1', { ipv6: 61 }, '2001:db8:1:28::/61'],
    ['2001:db8:1:2ff::1', { ipv6: 56 }, '2001:db8:1:200::/56'],
    ['2001:db8:1:2::1', { ipv6: 48 }, '2001:db8:1::/48'],
    ['ffff::', { ipv6: 1 }, '8000::/1'],
  ])('%s with the prefixes %j as %s', (texts, prefix, network) => {
    expect(new Set(counted(texts, prefix))).toEqual(new Set([network]));
  });

  it('as the same text when it is counted already', () => {
    fc.assert(
      fc.property(fc.oneof(fc.ipV4(), fc.ipV6()), fc.integer({ min: 1, max: 128 }), (address, ipv6) => {
        const prefix = { ipv4: Math.min(ipv6, 32), ipv6 };
        const once = countedAddress(address, prefix);
        expect(countedAddress(once, prefix)).toBe(once);
      }),
    );
  });

  it('as Node writes it, with all of its bits', () => {
    fc.assert(
      fc.property(fc.ipV6(), (text) => {
        const { address } = new SocketAddress({ address: text, family: 'ipv6' });
        // Node writes the last bits of some addresses as IPv4, which RFC 5952 has only for mapped ones.
        fc.pre(!address.includes('.'));
        expect(countedAddress(text, { ipv4: 32, ipv6: 128 })).toBe(address);
      }),
      { numRuns: 2000 },
    );
  });
});

describe('a text that is no address', () => {
  it.each([
    ['with a zone', 'fe80::1%eth0 · fe80::1%eth0.100 · 2001:db8:1:2::1%a · ::ffff:198.51.100.7%1 · [fe80::1%1]:80'],
    [
      'of other numbers',
      '010.0.0.1 · 10.1 · 167772161 · 0x0a000001 · 1.2.3 · 1.2.3.04 · ::ffff:198.051.100.7 · 00.0.0.0',
    ],
    [
      'of more or less',
      '1.2.3.4. · 1.2.3.256 ·  1.2.3.4 · 1.2.3.4  · 1.2.3.4\n · 1.2.3.4\0 · １.2.3.4 · .1.2.3.4 · 1..2.3',
    ],
    ['of several parts', '198.51.100.0/24 · 2001:db8:1:2::/64 · 198.51.100.7, 10.0.0.1 · 1.2.3.4.5'],
    ['with half a port', '198.51.100.7: · 198.51.100.7:123456 · 198.51.100.7:x · [198.51.100.7]:80 · [2001:db8::1]:'],
    ['with half a bracket', '[2001:db8::1 · 2001:db8::1]:80 · [2001:db8::1]x · [ · ] · []'],
    ['of words', ' · unknown · - · : · ::: · ::g · a.b:c'],
    ['of wrong groups', '2001:db8:1:2::1::2 · 1:2:3:4:5:6:7:8:9 · 12345::1 · :1:2:3:4:5:6:7 · 1:2:3:4:5:6:7:'],
    ['of too many groups', '1:2:3:4:5:6:7:8:: · ::1:2:3:4:5:6:7:8 · 1:2:3:4:5:6:7:1.2.3.4 · 1:2:3:4:5:1.2.3.4 · 1:2'],
    ['that is long', '1'.repeat(100_000)],
  ])('%s is counted as itself', (_, texts) => {
    expect(counted(texts)).toEqual(texts.split(' · '));
  });

  it('is what Node does not know as an address without a zone, a port or brackets', () => {
    const text = fc.string({ unit: fc.constantFrom(...'0123456789af:.:.'.split('')), maxLength: 24 });
    const mutated = fc
      .tuple(fc.oneof(fc.ipV4(), fc.ipV6()), fc.nat(40), fc.constantFrom('', ':', '.', '0', '::', '1', 'f'))
      .map(([address, at, inserted]) => address.slice(0, at) + inserted + address.slice(at + 1));
    fc.assert(
      fc.property(fc.oneof(text, mutated), (value) => {
        fc.pre(!/^[\d.]+:\d+$/.test(value));
        const isAddress = countedAddress(value, { ipv4: 1, ipv6: 1 }) !== value;
        // A call of `expect` takes ten times as long.
        return isAddress === isIP(value) > 0;
      }),
      { numRuns: 20_000 },
    );
  });
});
