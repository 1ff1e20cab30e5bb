import { LifeLog } from '../../src/main/life-log';
import { RecordedLog } from '../support/data/recorded-log';

describe('the log of the life of the service', () => {
  it('warns of a jump of the system clock, with how far and in which direction', () => {
    const log = new RecordedLog();
    const life = new LifeLog(log);
    life.clockJumped(7_200_000);
    life.clockJumped(-1500);
    expect(log.lines).toEqual([
      {
        level: 'warn',
        message: 'the system clock jumped ahead; limits count in the windows of the new time',
        fields: { by: '7200.000s' },
      },
      {
        level: 'warn',
        message: 'the system clock jumped back; limits count in the windows of the new time',
        fields: { by: '1.500s' },
      },
    ]);
  });

  it.each([
    [{ kind: 'drained' }, false, 0, 'notice', 'drained; the process exits'],
    [{ kind: 'drained' }, true, 1, 'error', 'drained, but calls have failed; the process exits'],
    [
      { kind: 'aborted', why: 'deadline', step: 'gRPC calls' },
      true,
      1,
      'error',
      'drain aborted by deadline; still in flight: gRPC calls',
    ],
  ] as const)('ends with the outcome of the drain, and with the exit code: %j, lost calls: %s', (...row) => {
    const [outcome, hasLostCalls, code, level, message] = row;
    const log = new RecordedLog();
    let now = 0;
    const life = new LifeLog(log, () => now);
    life.draining();
    now = 1234;
    expect(life.drained(outcome, hasLostCalls)).toBe(code);
    expect(log.lines.at(-1)).toEqual({ level, message, fields: { duration: '1234ms', exit_code: code } });
  });
});
