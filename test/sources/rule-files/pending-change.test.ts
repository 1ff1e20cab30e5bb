import { PendingChange } from '../../../src/sources/rule-files/rule-reader';
import { TIMING } from '../../../src/sources/rule-files/rule-file-source';

type Found = readonly [at: number, sizes: string, isChanged?: boolean];
const UNCHANGED = 'read';

/** When a change is read that these looks find, with notices of the file system at these times, and why. */
function readAt(looks: readonly Found[], hints: readonly number[] = []): string {
  const change = new PendingChange(TIMING);
  let before = 0;
  for (const [at, sizes, isChanged = sizes !== UNCHANGED] of looks) {
    for (const hint of hints) if (hint >= before && hint < at) change.hinted(hint);
    before = at;
    change.looked(sizes, isChanged, at);
    if (!isChanged) expect(change.waiting(at)).toBe(0);
    else if (change.isHeld(at)) return `held at ${at}`;
    else if (change.isForced(at)) return `forced at ${at}`;
  }
  return 'not read';
}

/** Looks one poll apart. */
function polls(...sizes: readonly string[]): readonly Found[] {
  return sizes.map((size, index) => [index * TIMING.poll, size]);
}

describe('a change of rule files is read', () => {
  it.each<[when: string, looks: readonly Found[], hints: readonly number[], expected: string]>([
    ['when two polls have found the same sizes', polls(UNCHANGED, 'a', 'a'), [], 'held at 1800'],
    [
      'also if it leaves the sizes as they were',
      [
        [0, UNCHANGED],
        [900, UNCHANGED, true],
        [1_800, UNCHANGED, true],
      ],
      [],
      'held at 1800',
    ],
    [
      'as it is at the second poll, within 2 s of the first one, when sizes keep changing',
      polls(UNCHANGED, 'a', 'b', 'c'),
      [],
      'forced at 1800',
    ],
    [
      'a second after its notice, when notices cause looks all the time',
      [[0, UNCHANGED], ...Array.from({ length: 30 }, (_, index): Found => [100 + index * 100, `size ${index}`])],
      [50, 150, 250],
      'forced at 1200',
    ],
    [
      'not before the sizes have been the same for long enough, however many looks there are',
      [
        [0, UNCHANGED],
        [900, 'a'],
        [950, 'a'],
        [1_000, 'a'],
        [1_650, 'a'],
        [1_700, 'a'],
      ],
      [890],
      'held at 1700',
    ],
    [
      'later when it becomes longer meanwhile',
      [
        [0, UNCHANGED],
        [900, 'a'],
        [1_500, 'b'],
        [1_650, 'b'],
      ],
      [890],
      'not read',
    ],
    [
      'not when it was undone, and the next one has its own time',
      [
        [0, UNCHANGED],
        [900, 'a'],
        [1_000, UNCHANGED],
        [1_900, 'b'],
        [2_000, 'c'],
      ],
      [50],
      'not read',
    ],
    ['not without one', polls(UNCHANGED, UNCHANGED, UNCHANGED), [], 'not read'],
  ])('%s', (_, looks, hints, expected) => {
    expect(readAt(looks, hints)).toBe(expected);
  });

  it('and waits no longer after it was read', () => {
    const change = new PendingChange(TIMING);
    change.looked(UNCHANGED, false, 0);
    change.looked('a', true, TIMING.poll);
    expect(change.waiting(6_000)).toBe(6_000);
    change.done();
    expect(change.waiting(6_000)).toBe(0);
  });
});
