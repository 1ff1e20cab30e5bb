import { workerArguments, workerNumber } from '../../../src/workers/worker/role';

const PROGRAM = ['node', 'main.js'];

describe('a process', () => {
  it('is a worker when it was forked with the arguments of a worker', () => {
    expect(workerNumber({ argv: [...PROGRAM, ...workerArguments(3)], connected: true })).toBe(3);
  });

  it('is none without an IPC channel, whatever its command line', () => {
    expect(workerNumber({ argv: [...PROGRAM, ...workerArguments(3)] })).toBeUndefined();
    expect(workerNumber({ argv: [...PROGRAM, ...workerArguments(3)], connected: false })).toBeUndefined();
  });

  it.each([[[]], [['--worker']], [['--worker', '0']], [['--worker', 'x']], [['--worker', '1', 'more']], [['--help']]])(
    'is none when it was forked by another program with the arguments %j',
    (args) => {
      expect(workerNumber({ argv: [...PROGRAM, ...args], connected: true })).toBeUndefined();
    },
  );
});
