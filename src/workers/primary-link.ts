import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { AsyncSubject, type Observable, ReplaySubject, firstValueFrom, map, merge, timer } from 'rxjs';
import { STOP_TIME } from '../streams/drain';
import { type Latest, latest } from '../streams/latest';
import { type Health, STARTING } from '../streams/readiness';
import { Channel } from './channel';
import { type Order, PIPES, type Report } from './process';

/** Milliseconds. */
const FLUSH_TIMEOUT = 2_000;
/** The health of an instance whose primary has died. */
const ORPHANED: Health = { healthy: false, unhealthy: ['termination'] };

/** The primary, seen from a worker. Without one, a worker drains and exits. */
export class PrimaryLink {
  readonly channel: Channel;
  /** The health of the instance; current while it is subscribed to. */
  readonly health$: Latest<Health>;
  readonly #orders = new Map<Order['kind'], ReplaySubject<Order>>();
  readonly #drained = new AsyncSubject<null>();

  constructor(stream: Duplex = new Socket({ fd: PIPES.channel })) {
    this.channel = new Channel(stream);
    this.health$ = latest(this.orders('health').pipe(map(({ health }) => health)), STARTING);
    this.channel.serveNow('ping', () => null);
    this.channel.serve('drain', (order: Order) => {
      this.#ordered(order);
      return this.#drained;
    });
    // oxlint-disable-next-line house-style/kept-subscriptions -- it ends with the channel, and the worker soon after
    this.channel.notifications<Order>('order').subscribe({
      next: (order) => this.#ordered(order),
      complete: () => {
        this.#ordered({ kind: 'health', health: ORPHANED });
        this.#ordered({ kind: 'drain', within: STOP_TIME });
        this.#ordered({ kind: 'finish' });
      },
    });
  }

  /** The orders of a kind: the last one on subscription, if there was one, then the others. Never completes. */
  orders<K extends Order['kind']>(kind: K): Observable<Extract<Order, { readonly kind: K }>> {
    return this.#subject(kind).asObservable() as Observable<Extract<Order, { readonly kind: K }>>;
  }

  report(report: Report): void {
    this.channel.notify('report', report);
  }

  /** The calls that were in flight when the drain was ordered are answered. */
  drained(): void {
    this.#drained.next(null);
    this.#drained.complete();
  }

  /**
   * Resolves when everything was sent, which may be lost when the process exits before; after {@link FLUSH_TIMEOUT} at
   * the latest.
   */
  flush(): Promise<unknown> {
    return firstValueFrom(merge(this.channel.sent(), timer(FLUSH_TIMEOUT)));
  }

  #ordered(order: Order): void {
    this.#subject(order.kind).next(order);
  }

  #subject(kind: Order['kind']): ReplaySubject<Order> {
    let subject = this.#orders.get(kind);
    if (subject === undefined) this.#orders.set(kind, (subject = new ReplaySubject(1)));
    return subject;
  }
}
