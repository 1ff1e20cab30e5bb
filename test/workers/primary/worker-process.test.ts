import childProcess, { ChildProcess } from 'node:child_process';
import { WorkerProcess } from '../../../src/workers/primary/worker-process';

describe('WorkerProcess', () => {
  afterEach(() => {
    jest.restoreAllMocks();
  });

  it('throws when too many files are open, and handles the error event that follows', () => {
    // The child that Node returns then: without streams and process.
    const child = new ChildProcess();
    jest.spyOn(childProcess, 'fork').mockReturnValue(child);
    function start() {
      return new WorkerProcess(1, { program: 'main.js', environment: {} });
    }
    expect(start).toThrow(new Error('too many open files in this process or on this machine (EMFILE or ENFILE)'));
    const error = Object.assign(new Error('spawn node EMFILE'), { code: 'EMFILE' });
    // Throws if no listener is attached; in the primary, the exception would not be caught.
    expect(() => child.emit('error', error)).not.toThrow();
  });
});
