import type { LiveEvent } from '../src/operators/live-answers';
import { ApiError, send, token } from './api';
import { Store } from './store';

export interface Live {
  /** `refused`: the token is wrong. `stopping`: the service has said so. */
  readonly state: 'connecting' | 'live' | 'lost' | 'refused' | 'stopping';
  /** Why it is not live. */
  readonly reason?: string;
  /** The last event; undefined before the first one. */
  readonly event?: LiveEvent;
}

/** Milliseconds without a byte: a proxy may not report that the service is gone. */
const SILENCE = 4_000;
/** Milliseconds between two attempts to connect: the first and the longest. */
const [FIRST_WAIT, LONGEST_WAIT] = [500, 15_000];

/** The stream of events. It is open while the page is visible: a browser opens six connections to a host at most. */
export const live = new Store<Live>({ state: 'connecting' });

/** Why this viewer may not change counters: one sentence without its full stop; empty: it may. */
export const refusal = new Store('');

let current = new AbortController();

export function watch(): void {
  document.addEventListener('visibilitychange', restart);
  token.subscribe(restart);
  restart();
}

function restart(): void {
  current.abort();
  current = new AbortController();
  if (!document.hidden) void follow(current.signal);
}

async function follow(signal: AbortSignal): Promise<void> {
  for (let wait = FIRST_WAIT; !signal.aborted; wait = Math.min(2 * wait, LONGEST_WAIT)) {
    try {
      await readEvents(signal, () => (wait = FIRST_WAIT));
    } catch (error) {
      if (signal.aborted) return;
      const isRefused = error instanceof ApiError && error.status === 401;
      const reason = error instanceof ApiError ? error.message : 'the service does not answer';
      live.set({ ...live.value, state: isRefused ? 'refused' : 'lost', reason });
      if (isRefused) return;
    }
    // Not all consoles at the same moment.
    await new Promise((resolve) => setTimeout(resolve, wait * (0.5 + Math.random())));
  }
}

/** Reads one stream to its end. */
async function readEvents(signal: AbortSignal, onEvent: () => void): Promise<void> {
  const silence = new AbortController();
  let timer = setTimeout(() => silence.abort(), SILENCE);
  try {
    const { body, headers } = await send('events', { signal: AbortSignal.any([signal, silence.signal]) });
    refusal.set(refusalOf(headers.get('Weir-Operator-Role')));
    let rest = '';
    for await (const text of body!.pipeThrough(new TextDecoderStream())) {
      clearTimeout(timer);
      timer = setTimeout(() => silence.abort(), SILENCE);
      const blocks = (rest + text).split('\n\n');
      rest = blocks.pop()!;
      for (const block of blocks) receive(block, onEvent);
    }
  } finally {
    clearTimeout(timer);
  }
  if (live.value.state !== 'stopping') throw new ApiError('the connection is interrupted', 0);
}

function refusalOf(role: string | null): string {
  if (role !== 'view') return '';
  if (token.value !== '') return 'This token has the role view: a change needs one with the role operate';
  return 'Changes are off: set OPERATOR_TOKENS_FILE or OPERATOR_TOKEN, and start the service again';
}

function receive(block: string, onEvent: () => void): void {
  if (block.startsWith('event: bye')) {
    live.set({ ...live.value, state: 'stopping', reason: 'the service stops' });
    return;
  }
  const data = /^data: (.*)$/m.exec(block)?.[1];
  // A comment.
  if (data === undefined) return;
  onEvent();
  live.set({ state: 'live', event: JSON.parse(data) as LiveEvent });
}
