import { measuredMethods } from '../../src/grpc/measured-methods';
import { GrpcStatus, type UnaryCall, type UnaryHandler } from '../../src/grpc/method';
import { Statistics } from '../../src/statistics/statistics';
import type { CancelCause } from '../../src/streams/ports/decide';

const PATH = '/package.Service/Method';
const NOTHING = new Uint8Array();

/** A call whose transport writes down what reaches it, and time that the test sets. */
function callOf(handle: UnaryHandler) {
  const statistics = new Statistics(0);
  const told: string[] = [];
  let cancel: (cause: CancelCause) => void = () => {};
  const durations: number[] = [];
  const time = { now: 100 };
  const method = measuredMethods(new Map([[PATH, handle]]), statistics, () => time.now).get(PATH);
  statistics
    .timer('ratelimit_server.Method.response_time')
    .giveTo({ add: (values, count) => durations.push(...values.subarray(0, count)) });
  const call: UnaryCall = {
    reply: () => void told.push('reply'),
    fail: (status, message) => void told.push(`${status} ${message}`),
    onCancel: (work) => (cancel = (cause) => work.cancel(cause)),
    metadata: (name) => `the ${name}`,
  };
  method?.(NOTHING, call);
  return {
    told,
    time,
    cancel: (cause: CancelCause) => cancel(cause),
    durations: () => {
      statistics.timer('ratelimit_server.Method.response_time').settle();
      return durations;
    },
    total: () => new Map(statistics.entries()).get('ratelimit_server.Method.total_requests'),
  };
}

describe('a call of a measured method', () => {
  let kept: UnaryCall;
  const keep: UnaryHandler = (_message, call) => {
    kept = call;
  };

  it('is counted when it comes, and timed when it is answered', () => {
    const { told, time, durations, total } = callOf(keep);
    expect([total(), durations()]).toEqual([1, []]);
    time.now = 107.5;
    kept.reply(NOTHING);
    expect([told, durations()]).toEqual([['reply'], [7.5]]);
  });

  it('is timed when it fails', () => {
    const { told, durations } = callOf((_message, call) => call.fail(GrpcStatus.INTERNAL, 'broken'));
    expect([told, durations()]).toEqual([['13 broken'], [0]]);
  });

  it('is timed when it is cancelled, once, whatever the service still does', () => {
    const causes: string[] = [];
    const { time, cancel, durations } = callOf((message, call) => {
      keep(message, call);
      call.onCancel({ cancel: (cause) => causes.push(cause) });
    });
    time.now = 103;
    cancel('deadline_exceeded');
    time.now = 110;
    kept.reply(NOTHING);
    expect([causes, durations()]).toEqual([['deadline_exceeded'], [3]]);
  });

  it('has the metadata of its transport', () => {
    callOf(keep);
    expect(kept.metadata?.('b3')).toBe('the b3');
  });
});
