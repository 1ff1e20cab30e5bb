import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { type Observable, ReplaySubject, concat, firstValueFrom, merge, of, timer } from 'rxjs';
import { type Awaited, type Health, STARTING } from '../../streams/readiness';
import { type Latest, latest } from '../../streams/latest';
import { jsonFrames, sendJson } from '../channel/json-frames';
import { StreamChannel } from '../channel/stream-channel';
import { TOPICS } from '../channel/topics';
import type { Order, Report, TlsTexts, WorkerState } from '../messages';

/** The file descriptor of the channel: the first after standard error and the IPC channel. */
const CHANNEL_FD = 4;
/** Milliseconds. */
const FLUSH_TIMEOUT = 2_000;
/** The health of an instance whose primary has died. */
const ORPHANED: Health = { healthy: false, unhealthy: ['termination'] };

/** The primary, seen from a worker. */
export class PrimaryLink {
  readonly channel: StreamChannel;
  /** The health of the instance; current while it is subscribed to. */
  readonly health$: Latest<Health>;
  readonly #tls = new ReplaySubject<TlsTexts>(1);
  readonly #drain = new ReplaySubject<void>(1);
  readonly #finish = new ReplaySubject<void>(1);

  constructor(stream: Duplex = new Socket({ fd: CHANNEL_FD })) {
    this.channel = new StreamChannel(stream);
    // Without a primary, this worker drains. The topic ends before that of the orders, which was opened later.
    this.health$ = latest(concat(jsonFrames<Health>(this.channel, TOPICS.health), of(ORPHANED)), STARTING);
    // oxlint-disable-next-line house-style/kept-subscriptions -- it ends with the channel, and the worker soon after
    jsonFrames<Order>(this.channel, TOPICS.control).subscribe({
      next: (order) => this.#ordered(order),
      complete: () => {
        this.#drain.next();
        this.#finish.next();
      },
    });
  }

  /** The certificates of the gRPC listener: the current ones on subscription, then every change. Never emits without TLS. */
  get tls$(): Observable<TlsTexts> {
    return this.#tls.asObservable();
  }

  /** Emits when the worker has to drain: the primary orders it, or is gone. */
  get drain$(): Observable<unknown> {
    return this.#drain.asObservable();
  }

  /** Emits when the worker has to exit after it has drained: the primary orders it, or is gone. */
  get finish$(): Observable<unknown> {
    return this.#finish.asObservable();
  }

  /** Begins to read, when the topics of the channel have their subscribers. */
  start(): void {
    this.channel.start();
  }

  report(report: Report): void {
    sendJson(this.channel, TOPICS.control, report);
  }

  reportState(health: Health, awaited: readonly Awaited[]): void {
    const state: WorkerState = { health, awaited };
    sendJson(this.channel, TOPICS.health, state);
  }

  /** Resolves when everything was sent, which may be lost when the process exits before; after {@link FLUSH_TIMEOUT} at the latest. */
  async flush(): Promise<void> {
    this.report({ kind: 'exiting' });
    await firstValueFrom(merge(this.channel.drained$, this.channel.closed$, timer(FLUSH_TIMEOUT)));
  }

  #ordered(order: Order): void {
    if (order.kind === 'ping') this.report({ kind: 'alive' });
    else if (order.kind === 'tls') this.#tls.next(order.tls);
    else if (order.kind === 'drain') this.#drain.next();
    else this.#finish.next();
  }
}
