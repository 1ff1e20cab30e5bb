import { dogstatsdLines } from '../../../src/sinks/statistics/lines';
import { PushOutput } from '../../../src/sinks/statistics/push-outputs';
import { ConnectionSender, type LineSender } from '../../../src/sinks/statistics/senders';
import { UdpSender } from '../../../src/sinks/statistics/udp-sender';
import { UnixDatagramSender } from '../../../src/sinks/statistics/unix-datagram-sender';
import { Statistics } from '../../../src/statistics/statistics';
import { RecordedLog } from '../../support/data/recorded-log';
import { type Lines, TcpReceiver, UdpReceiver } from '../../support/servers/statsd-receivers';
import { UnixDatagramReceiver } from '../../support/servers/unix-datagram-receiver';
import { SocketFolder, UnixReceiver } from '../../support/servers/unix-stream-receiver';

/** A registry of statistics that are sent as DogStatsD lines, without extra tags, and the log about it. */
export class SentStatistics implements Disposable {
  readonly statistics = new Statistics(10_000);
  readonly log = new RecordedLog();
  readonly output: PushOutput;

  constructor(sender: LineSender) {
    const { statistics, log } = this;
    this.output = new PushOutput({ statistics, format: dogstatsdLines({}, []), sender, log });
  }

  /** Counts hits on the rule `d.k` and flushes. */
  async hit(hits = 1): Promise<void> {
    this.statistics.rule('d.k').totalHits += hits;
    await this.output.flush();
  }

  [Symbol.dispose](): void {
    this.output.close();
  }
}

/** The counter that {@link SentStatistics.hit} increments. */
export const HITS = 'ratelimit.service.rate_limit.d.k.total_hits';

/** The log lines when a receiver becomes unavailable, and when it is back. */
export const CHANGES = ['warn cannot send statistics; will retry', 'notice resumed sending statistics'] as const;

/** An address at which a receiver can start, end, and start again, and senders to it. */
export interface Place extends Disposable {
  readonly start: (options?: { readonly reads?: boolean }) => Promise<Lines & AsyncDisposable>;
  /** @param timeout of a send, in milliseconds */
  readonly sender: (timeout?: number) => LineSender;
}

const host = '127.0.0.1';

/** A place at a port that is free when `receiver` has ended. */
async function atPort(receiver: TcpReceiver | UdpReceiver, place: (port: number) => Omit<Place, symbol>) {
  const { port } = receiver;
  await receiver[Symbol.asyncDispose]();
  return { ...place(port), [Symbol.dispose]: () => undefined };
}

/** A place at a Unix socket. */
async function atSocket(place: (path: string) => Omit<Place, symbol>) {
  const folder = new SocketFolder();
  return { ...place(folder.path), [Symbol.dispose]: () => folder[Symbol.dispose]() };
}

/** A place for each kind of transport. */
export const TRANSPORTS = {
  tcp: async (): Promise<Place> =>
    atPort(await TcpReceiver.start(), (port) => ({
      start: (options) => TcpReceiver.start({ port, ...options }),
      sender: (timeout = 20_000) => new ConnectionSender({ to: { host, port }, timeout }),
    })),
  udp: async (): Promise<Place> =>
    atPort(await UdpReceiver.start(), (port) => ({
      start: () => UdpReceiver.start({ port }),
      sender: () => new UdpSender({ host, port, icmpWait: 200 }),
    })),
  'unix stream': (): Promise<Place> =>
    atSocket((path) => ({
      start: (options) => UnixReceiver.start(path, { framing: 'lines', ...options }),
      sender: (timeout = 20_000) => new ConnectionSender({ to: { path }, timeout }),
    })),
  'unix datagram': (): Promise<Place> =>
    atSocket((path) => ({
      start: async ({ reads = true } = {}) => {
        const receiver = await UnixDatagramReceiver.start(path);
        if (!reads) receiver.pause();
        return receiver;
      },
      sender: (timeout = 20_000) => new UnixDatagramSender(path, timeout),
    })),
} as const;
