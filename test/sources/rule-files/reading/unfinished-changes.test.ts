import type { FileStat } from '../../../../src/sources/rule-files/reading/stat-folder';
import { mayBeUnfinished } from '../../../../src/sources/rule-files/reading/unfinished-changes';

function file(inode: string, stamp: string, wasMoved = false): FileStat {
  return { inode, stamp, size: 1, wasMoved };
}
const before = new Map([
  ['a.yaml', file('1', 'x')],
  ['b.yaml', file('2', 'y')],
]);

describe('a change of files', () => {
  it.each([
    { what: 'nothing has changed', now: [...before], may: false },
    {
      what: 'another file was moved to the path of a file',
      now: [
        ['a.yaml', file('3', 'z', true)],
        ['b.yaml', file('2', 'y')],
      ],
      may: false,
    },
    {
      what: 'a file was removed and written again',
      now: [
        ['a.yaml', file('3', 'z')],
        ['b.yaml', file('2', 'y')],
      ],
      may: true,
    },
    {
      what: 'a file was written in place',
      now: [
        ['a.yaml', file('1', 'z', true)],
        ['b.yaml', file('2', 'y')],
      ],
      may: true,
    },
    { what: 'a file is missing', now: [['a.yaml', file('1', 'x')]], may: true },
    { what: 'a file is new', now: [...before, ['c.yaml', file('3', 'z')]], may: true },
  ] as const)('may be unfinished when $what: $may', ({ now, may }) => {
    expect(mayBeUnfinished(before, new Map(now))).toBe(may);
  });
});
