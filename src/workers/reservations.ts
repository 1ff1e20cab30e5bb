import type { DecisionError } from '../counting/decision-error';
import type { Counted } from '../counting/operation';
import type {
  OpenReservations,
  ReservationChange,
  ReservationResult,
  ReservationStore,
} from '../streams/ports/reservations';
import type { Channel } from './channel';
import { ANSWER_LIMIT, primaryEnded, primarySilent } from './counters';

/** The number of a call, with what it asks for or what is answered. */
type Call = readonly [number: number, asked: Asked];
type Asked =
  { readonly read: string } | { readonly change: ReservationChange } | { readonly open: Counted; readonly now: number };
type Answer = readonly [number: number, result: string | ReservationResult | OpenReservations | null];

interface SentCall {
  readonly answered: (result: Answer[1]) => void;
  readonly failed: (error: DecisionError) => void;
  readonly timer: NodeJS.Timeout;
}

/** The reservations in the memory of the primary, seen from a worker. */
export class RemoteReservations implements ReservationStore {
  readonly #channel: Channel;
  readonly #sent = new Map<number, SentCall>();
  #calls = 0;
  #isClosed = false;

  constructor(channel: Channel) {
    this.#channel = channel;
    channel.receive('reservations', ([number, result]: Answer) => this.#take(number)?.answered(result));
    // oxlint-disable-next-line house-style/kept-subscriptions -- it ends with the channel
    channel.closed$.subscribe(() => {
      this.#isClosed = true;
      for (const number of this.#sent.keys()) this.#take(number)?.failed(primaryEnded());
    });
  }

  async readRecord(key: string): Promise<string | undefined> {
    return ((await this.#call({ read: key })) as string | null) ?? undefined;
  }

  async changeReservation(change: ReservationChange): Promise<ReservationResult> {
    return (await this.#call({ change })) as ReservationResult;
  }

  async readOpen({ key, limit: { requestsPerUnit, windowSeconds } }: Counted, now: number): Promise<OpenReservations> {
    return (await this.#call({ open: { key, limit: { requestsPerUnit, windowSeconds } }, now })) as OpenReservations;
  }

  #call(asked: Asked): Promise<Answer[1]> {
    if (this.#isClosed) return Promise.reject(primaryEnded());
    const number = (this.#calls += 1);
    return new Promise((answered, failed) => {
      const timer = setTimeout(() => this.#take(number)?.failed(primarySilent()), ANSWER_LIMIT);
      this.#sent.set(number, { answered, failed, timer });
      this.#channel.send('reservations', [number, asked] satisfies Call);
    });
  }

  #take(number: number): SentCall | undefined {
    const call = this.#sent.get(number);
    this.#sent.delete(number);
    clearTimeout(call?.timer);
    return call;
  }
}

/** Answers the calls of a worker from the reservations of this process, in the order of their arrival, until the channel closes. */
export function serveReservations(channel: Channel, store: ReservationStore): void {
  channel.receive('reservations', async ([number, asked]: Call) => {
    channel.send('reservations', [number, (await answerTo(store, asked)) ?? null] satisfies Answer);
  });
}

function answerTo(store: ReservationStore, asked: Asked): Promise<Answer[1] | undefined> {
  if ('read' in asked) return store.readRecord(asked.read);
  return 'open' in asked ? store.readOpen(asked.open, asked.now) : store.changeReservation(asked.change);
}
