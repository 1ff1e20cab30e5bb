import { FrameReader } from '../frames/frame-reader';
import { PeerSettings } from '../protocol';
import { ErrorCode } from '../protocol';
import { AbuseLimits } from '../limits/abuse-limits';
import type { Transport } from '../streams/connection-control';
import { RunQueue, type RunQueueControl } from '../streams/run-queue';
import { SendQueue, type SendQueueControl } from '../streams/send-queue';
import { Streams, type StreamsControl } from '../streams/streams';
import { BackPressure } from './back-pressure';
import type { ConnectionContext } from './connection-context';
import { DataFrames } from './data-frames';
import { FrameHandler } from './frame-handler';
import { GracefulShutdown, type GracefulShutdownControl } from './graceful-shutdown';
import { HeaderFrames } from './header-frames';
import { Keepalive } from './keepalive';
import { SettingsExchange } from './settings-exchange';

/** What the parts of a connection ask it for. */
export interface PartsControl<S>
  extends StreamsControl, SendQueueControl<S>, RunQueueControl, GracefulShutdownControl {}

/** The parts that a connection uses itself. */
export interface ConnectionParts<M, S> {
  readonly sendQueue: SendQueue<S>;
  readonly runQueue: RunQueue<S>;
  readonly streams: Streams<S>;
  readonly settings: SettingsExchange<S>;
  readonly headers: HeaderFrames<M, S>;
  readonly shutdown: GracefulShutdown<S>;
  readonly keepalive: Keepalive;
  readonly backPressure: BackPressure;
  readonly reader: FrameReader;
}

/**
 * Wires the parts of a connection together: each receives the other parts that it uses, and the connection as its `control`.
 *
 * @param prefaceMs the part of {@link Limits.prefaceMs} that is left
 */
export function connectionParts<M, S>(
  control: PartsControl<S>,
  context: ConnectionContext<M, S>,
  transport: Transport,
  prefaceMs: number,
): ConnectionParts<M, S> {
  const { application, limits, workPacing: pacing } = context;
  const peerSettings = new PeerSettings();
  const abuseLimits = new AbuseLimits(limits, (rejection, message) =>
    control.fail(ErrorCode.ENHANCE_YOUR_CALM, rejection, message),
  );
  // No spreads of a common object here: they cost 5 KiB of memory per idle connection (measured with bench:grpc-server).
  const sendQueue = new SendQueue<S>({ control, limits, abuseLimits, peerSettings, transport, clock: context });
  const { writer } = sendQueue;
  const runQueue = new RunQueue<S>({ control, application, sendQueue, clock: context, limits, pacing });
  const streams = new Streams<S>({ control, context, abuseLimits, peerSettings, sendQueue, runQueue });
  const settings = new SettingsExchange<S>({
    control,
    limits,
    abuseLimits,
    peerSettings,
    sendQueue,
    streams,
    prefaceMs,
  });
  const headers = new HeaderFrames<M, S>({ control, context, abuseLimits, streams, settings });
  const data = new DataFrames<S>({ control, context, abuseLimits, streams, writer });
  const shutdown = new GracefulShutdown<S>({ control, limits, streams, writer });
  const keepalive = new Keepalive(writer, limits, control.now);
  const backPressure = new BackPressure({ control, limits, sendQueue, transport });
  const reader = new FrameReader(
    new FrameHandler({ control, abuseLimits, sendQueue, streams, settings, headers, data, shutdown }),
  );
  return { sendQueue, runQueue, streams, settings, headers, shutdown, keepalive, backPressure, reader };
}
