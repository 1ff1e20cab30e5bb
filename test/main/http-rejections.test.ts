import { Socket } from 'node:net';
import { VirtualTimeScheduler } from 'rxjs';
import type { HttpRejection } from '../../src/http/server/rejections';
import { HttpRejections } from '../../src/main/http-rejections';
import { Statistics } from '../../src/statistics/statistics';
import { recordingLog } from '../http/http-client';

const BEGINS = 'warn an HTTP listener has too many connections; it closes idle ones for new ones, or else the new ones';
const ENDS = 'warn an HTTP listener no longer closes connections for new ones';

function start() {
  const statistics = new Statistics(10);
  const log = recordingLog();
  const time = new VirtualTimeScheduler();
  const rejections = new HttpRejections(statistics, log);
  rejections.logConditions(time).subscribe();
  return {
    time,
    reject: (kind: HttpRejection, listener = 'HTTP') => rejections.of(listener)(kind, new Socket(), 'reason'),
    lines: () => log.lines.filter((line) => !line.startsWith('debug')),
    debugLines: () => log.lines.filter((line) => line.startsWith('debug')),
    count: (name: string) => statistics.counter(`ratelimit_server.http.${name}`).value,
  };
}

describe('rejections of the HTTP listeners', () => {
  it('are counted by kind and logged one by one at level debug', () => {
    const { reject, lines, debugLines, count } = start();
    reject('malformed');
    reject('malformed');
    reject('data_dribble');
    expect([count('malformed'), count('data_dribble'), count('connections')]).toEqual([2, 1, 0]);
    expect(debugLines()).toEqual(Array(3).fill('debug HTTP connection or request rejected'));
    expect(lines()).toEqual([]);
  });

  it('that last are logged when they begin, and when there are no more of them', () => {
    const { time, reject, lines, count } = start();
    for (let at = 0; at < 1_000; at += 1) reject('connections');
    expect(lines()).toEqual([BEGINS]);
    time.flush();
    expect(lines()).toEqual([BEGINS, ENDS]);
    reject('connections');
    expect(lines()).toEqual([BEGINS, ENDS, BEGINS]);
    expect(count('connections')).toBe(1_001);
  });

  it('of two kinds or of two listeners that last are different conditions', () => {
    const { reject, lines } = start();
    reject('connections');
    reject('request_memory');
    reject('connections', 'debug');
    expect(lines()).toEqual([
      BEGINS,
      'warn unfinished bodies of HTTP requests use all of the memory for them; the largest and oldest are rejected',
      BEGINS,
    ]);
  });
});
