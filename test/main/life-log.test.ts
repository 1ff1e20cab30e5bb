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
});
