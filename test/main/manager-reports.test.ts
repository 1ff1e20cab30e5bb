import { NEVER, Subject, lastValueFrom, of } from 'rxjs';
import { managerReports } from '../../src/main/service-manager';
import type { Readiness } from '../../src/main/readiness';
import { RecordedLog } from '../support/data/recorded-log';

afterEach(() => {
  jest.useRealTimers();
});

/** The reports of a service that receives SIGTERM; `answers` are those of the manager to its messages, in order. */
async function reportsOfEnd(answers: readonly Promise<void>[]) {
  const sent: string[] = [];
  const notifier = {
    send([line]: readonly [string, ...string[]]): Promise<void> {
      sent.push(line);
      return answers[sent.length - 1]!;
    },
  };
  const readiness = { status$: of('serving'), opened$: NEVER } as unknown as Readiness;
  const signal$ = new Subject<NodeJS.Signals>();
  const log = new RecordedLog();
  const reports = managerReports(notifier, { readiness, signal$, drainTime: 1_000, watchdog: undefined, log });
  reports.reports$.subscribe();
  signal$.next('SIGTERM');
  const end = { isReported: false };
  reports.stopReported$.subscribe({ complete: () => (end.isReported = true) });
  await turn();
  return { sent, end, log };
}

/** Lets promises settle. */
function turn(): Promise<void> {
  return new Promise((resolve) => process.nextTick(resolve));
}

describe('the reports to a service manager', () => {
  it('are complete when the manager has the last message, which follows those before', async () => {
    const taken = new Subject<void>();
    const { sent, end } = await reportsOfEnd([lastValueFrom(taken, { defaultValue: undefined }), Promise.resolve()]);
    expect([sent, end.isReported]).toEqual([['STATUS=serving'], false]);
    taken.complete();
    await turn();
    await turn();
    expect([sent, end.isReported]).toEqual([['STATUS=serving', 'STOPPING=1'], true]);
  });

  it('are complete when the manager cannot be told', async () => {
    const { end, log } = await reportsOfEnd([Promise.resolve(), Promise.reject(new Error('connection refused'))]);
    await turn();
    expect(end.isReported).toBe(true);
    expect(log.messages).toEqual(['cannot notify the service manager']);
  });

  it('are given up five seconds after the drain', async () => {
    jest.useFakeTimers({ doNotFake: ['nextTick'] });
    const { sent, end } = await reportsOfEnd([Promise.resolve(), new Promise(() => undefined)]);
    await turn();
    expect(sent).toContain('STOPPING=1');
    jest.advanceTimersByTime(4_999);
    expect(end.isReported).toBe(false);
    jest.advanceTimersByTime(1);
    expect(end.isReported).toBe(true);
  });
});
