import { useRef } from 'preact/hooks';
import { useAnswer } from './api';
import { Chart, outcomeLines } from './chart';
import type { Caller } from './counters';
import { Card } from './parts';
import { capital, listed } from './text';

/** The answer of `GET /api/watches`: calls in each of the last seconds, the newest at the end. */
interface Watched {
  /** In Unix seconds. */
  readonly times: readonly number[];
  readonly calls: readonly number[];
  readonly denied: readonly number[];
  /** The instances that are not in the sums. */
  readonly missing: readonly string[];
}

/** Milliseconds between two looks. */
const LOOK_INTERVAL = 2_000;
/** Seconds that are kept while the page is open; an answer has the last 60. */
const MOST_SECONDS = 600;

/** The calls of a caller on all instances, second by second from the time at which its page was opened. */
export function WatchedCalls({ query }: { readonly query: Caller }) {
  const path = `watches?${String(new URLSearchParams({ ...query }))}`;
  const { value, error } = useAnswer<Watched>(path, { every: LOOK_INTERVAL });
  const seconds = useRef(new Map<number, readonly [calls: number, denied: number]>());
  for (const [index, time] of (value?.times ?? []).entries()) {
    seconds.current.set(time, [value!.calls[index]!, value!.denied[index]!]);
  }
  const known = [...seconds.current].sort(([one], [other]) => one - other).slice(-MOST_SECONDS);
  const [times, values] = [known.map(([time]) => time), known.map(([, each]) => each)];
  const [calls, denied] = [values.map(([all]) => all), values.map(([, over]) => over)];
  const lines = outcomeLines(['calls', 'limited'], calls, denied);
  // The page asks for it.
  if (error?.status === 401) return <></>;
  const missing = value?.missing ?? [];
  const note = listed(['per second', missing.length > 0 && `without ${missing.join(', ')}`]);
  const label = 'Calls of this caller per second';
  return (
    <Card title="Calls of this caller" columns={12} note={note}>
      {error !== undefined && <p class="empty">{capital(error.message)}.</p>}
      {times.length === 0 && error === undefined && <p class="empty">Counted from now on…</p>}
      {times.length > 0 && (
        <Chart label={label} height={170} history={{ interval: 1, marks: [], times }} lines={lines} />
      )}
    </Card>
  );
}
