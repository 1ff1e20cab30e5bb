import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { type Observable, ReplaySubject, map } from 'rxjs';
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

  constructor(stream: Duplex = new Socket({ fd: PIPES.channel })) {
    this.channel = new Channel(stream);
    this.health$ = latest(this.orders('health').pipe(map(({ health }) => health)), STARTING);
    // oxlint-disable-next-line house-style/kept-subscriptions -- it ends with the channel, and the worker soon after
    this.channel.messages<Order>('control').subscribe({
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
    this.channel.send('control', report);
  }

  /** Resolves when everything was sent, which may be lost when the process exits before; after {@link FLUSH_TIMEOUT} at the latest. */
  async flush(): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    await Promise.race([this.channel.sent(), new Promise((resolve) => (timer = setTimeout(resolve, FLUSH_TIMEOUT)))]);
    clearTimeout(timer);
  }

  #ordered(order: Order): void {
    if (order.kind === 'ping') this.report({ kind: 'alive' });
    else this.#subject(order.kind).next(order);
  }

  #subject(kind: Order['kind']): ReplaySubject<Order> {
    let subject = this.#orders.get(kind);
    if (subject === undefined) this.#orders.set(kind, (subject = new ReplaySubject(1)));
    return subject;
  }
}
