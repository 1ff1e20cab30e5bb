import { usableMemory } from '../../src/main/usable-memory';

const GIB = 2 ** 30;

describe('the memory that the process may use', () => {
  it.each([
    ['the heap limit', { heap: GIB, container: 2 * GIB, machine: 16 * GIB }, GIB],
    ['the limit of the container', { heap: 4 * GIB, container: GIB / 2, machine: 16 * GIB }, GIB / 2],
    ['the memory of the machine', { heap: 4 * GIB, container: 8 * GIB, machine: 2 * GIB }, 2 * GIB],
    [
      'the heap limit where Node reports 0 as the limit of no container',
      { heap: GIB, container: 0, machine: 2 * GIB },
      GIB,
    ],
    [
      'the heap limit where Node reports 2^64 for no container',
      { heap: GIB, container: 2 ** 64, machine: 2 * GIB },
      GIB,
    ],
  ])('is %s', (_, limits, expected) => {
    expect(usableMemory(limits)).toBe(expected);
  });

  it('is known for this process', () => {
    expect(usableMemory()).toBeGreaterThan(10_000_000);
    expect(usableMemory()).toBeLessThan(2 ** 50);
  });
});
