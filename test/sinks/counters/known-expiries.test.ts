import { KnownExpiries } from '../../../src/sinks/counters/kvstore/counting/known-expiries';

function step(key: string, hits = 1): { key: string; hits: number; windowSeconds: number } {
  return { key, hits, windowSeconds: 60 };
}

describe('KnownExpiries', () => {
  it('knows the keys of steps that added hits, and no others', () => {
    const known = new KnownExpiries(() => 0);
    known.add([step('added', 2), step('read', 0), step('less', -1)]);
    expect(['added', 'read', 'less', 'other'].map((key) => known.has(step(key)))).toEqual([true, false, false, false]);
  });

  it('knows a key for windows up to the longest for which it was examined', () => {
    const known = new KnownExpiries(() => 0);
    known.add([{ ...step('k'), windowSeconds: 60 }]);
    function isKnownFor(windowSeconds: number): boolean {
      return known.has({ ...step('k'), windowSeconds });
    }
    expect([1, 60, 3600].map(isKnownFor)).toEqual([true, true, false]);
    known.add([{ ...step('k'), windowSeconds: 3600 }]);
    known.add([{ ...step('k'), windowSeconds: 1 }]);
    expect([1, 60, 3600].map(isKnownFor)).toEqual([true, true, true]);
  });

  it('forgets its keys after ten seconds', () => {
    let now = 0;
    const known = new KnownExpiries(() => now);
    known.add([step('a')]);
    now = 9_999;
    known.forgetOld();
    expect(known.has(step('a'))).toBe(true);
    now = 10_000;
    known.forgetOld();
    expect(known.has(step('a'))).toBe(false);
    known.add([step('b')]);
    now = 19_999;
    known.forgetOld();
    expect(known.has(step('b'))).toBe(true);
  });

  it('remembers neither more than 32,768 keys nor keys of more than 256 characters', () => {
    const known = new KnownExpiries(() => 0);
    known.add([step('x'.repeat(256)), step('x'.repeat(257))]);
    expect(known.has(step('x'.repeat(256)))).toBe(true);
    expect(known.has(step('x'.repeat(257)))).toBe(false);
    known.add(Array.from({ length: 40_000 }, (_, index) => step(`k${index}`)));
    expect([known.has(step('k32766')), known.has(step('k32767'))]).toEqual([true, false]);
  });
});
