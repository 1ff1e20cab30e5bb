import type { FileFacts } from '../../../../src/sources/rule-files/reading/snapshot';
import { mayBeUnfinished } from '../../../../src/sources/rule-files/reading/unfinished-changes';

function file(inode: string, stamp: string, isBlank = false): FileFacts {
  return { inode, stamp, isBlank };
}
const before = new Map([
  ['a.yaml', file('1', 'x')],
  ['b.yaml', file('2', 'y', true)],
]);

describe('files at which somebody may still be at work', () => {
  it.each([
    { what: 'nothing has changed', now: [...before], may: false },
    {
      what: 'one was put in the place of another',
      now: [
        ['a.yaml', file('3', 'z')],
        ['b.yaml', file('2', 'y', true)],
      ],
      may: false,
    },
    {
      what: 'a blank one was put in the place of a blank one',
      now: [
        ['a.yaml', file('1', 'x')],
        ['b.yaml', file('3', 'z', true)],
      ],
      may: false,
    },
    {
      what: 'one was written to in place',
      now: [
        ['a.yaml', file('1', 'z')],
        ['b.yaml', file('2', 'y', true)],
      ],
      may: true,
    },
    {
      what: 'a blank one was put in the place of another',
      now: [
        ['a.yaml', file('3', 'z', true)],
        ['b.yaml', file('2', 'y', true)],
      ],
      may: true,
    },
    { what: 'one has gone', now: [['a.yaml', file('1', 'x')]], may: true },
    { what: 'one is new', now: [...before, ['c.yaml', file('3', 'z')]], may: true },
  ] as const)('$what: $may', ({ now, may }) => {
    expect(mayBeUnfinished(before, new Map(now))).toBe(may);
  });
});
