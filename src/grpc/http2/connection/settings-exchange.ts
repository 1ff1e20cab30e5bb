import type { AbuseLimits } from '../limits/abuse-limits';
import { ConnectionError } from '../frames/errors';
import type { Limits } from '../limits/limits';
import type { SendQueue } from '../streams/send-queue';
import type { PeerSettings } from '../frames/peer-settings';
import { DEFAULT_HEADER_TABLE_BYTES, DEFAULT_WINDOW_BYTES, ErrorCode, Setting } from '../frames/protocol';
import type { Streams } from '../streams/streams';
import type { ConnectionControl } from '../streams/connection-control';

/** SETTINGS both ways (RFC 9113, section 6.5): ours are sent once, the peer's may come at any time. */
export class SettingsExchange<S> {
  readonly #whole: ConnectionControl;
  readonly #peer: PeerSettings;
  readonly #streams: Streams<S>;
  readonly #outflow: SendQueue<S>;
  readonly #allowances: AbuseLimits;
  readonly #limits: Limits;
  /** Whether the peer has sent its first. */
  hasBegun = false;
  /** Whether the peer knows ours. */
  isAcknowledged = false;
  #prefaceDeadline: number;
  #ackDeadline: number;

  constructor(
    whole: ConnectionControl,
    peer: PeerSettings,
    streams: Streams<S>,
    outflow: SendQueue<S>,
    allowances: AbuseLimits,
    limits: Limits,
    prefaceMs: number,
  ) {
    this.#whole = whole;
    this.#peer = peer;
    this.#streams = streams;
    this.#outflow = outflow;
    this.#allowances = allowances;
    this.#limits = limits;
    this.#prefaceDeadline = whole.now + prefaceMs;
    this.#ackDeadline = whole.now + prefaceMs + limits.settingsAckMs;
  }

  get deadline(): number {
    return Math.min(this.#prefaceDeadline, this.#ackDeadline);
  }

  check(now: number): void {
    if (now >= this.#prefaceDeadline) {
      this.#whole.fail(ErrorCode.SETTINGS_TIMEOUT, 'preface_timeout', 'no SETTINGS in time');
    } else if (now >= this.#ackDeadline) {
      this.#whole.fail(ErrorCode.SETTINGS_TIMEOUT, 'settings_timeout', 'SETTINGS not acknowledged');
    }
  }

  sendOurs(): void {
    const limits = this.#limits;
    this.#outflow.writer.settings([
      [Setting.MAX_CONCURRENT_STREAMS, limits.maxConcurrentStreams],
      [Setting.MAX_HEADER_LIST_SIZE, limits.maxHeaderListBytes],
      [Setting.NO_RFC7540_PRIORITIES, 1],
    ]);
    this.#outflow.writer.windowUpdate(0, limits.connectionWindowBytes - DEFAULT_WINDOW_BYTES);
  }

  onSettings(source: Buffer, start: number, end: number): void {
    const whole = this.#whole;
    const peer = this.#peer;
    const allowances = this.#allowances;
    const isFirst = !this.hasBegun;
    this.hasBegun = true;
    this.#prefaceDeadline = Infinity;
    if (isFirst) this.#ackDeadline = whole.now + this.#limits.settingsAckMs;
    if (end - start > this.#limits.settingsEntries * 6) {
      throw new ConnectionError(ErrorCode.ENHANCE_YOUR_CALM, 'settings_flood', 'too many settings in one frame');
    }
    allowances.chargeSettings(whole.now);
    const before = peer.initialWindowBytes;
    for (let unknown = peer.apply(source, start, end); unknown > 0; unknown -= 1) allowances.chargeIdleFrame(whole.now);
    if (peer.initialWindowBytes !== before) this.#streams.moveSendWindows(peer.initialWindowBytes - before);
    if (peer.smallestHeaderTableBytes < DEFAULT_HEADER_TABLE_BYTES) this.#outflow.oweTableSizeUpdate();
    if (whole.mayControl()) this.#outflow.writer.settingsAck();
  }

  onAck(): void {
    if (this.isAcknowledged) return this.#allowances.chargeFault(this.#whole.now);
    this.isAcknowledged = true;
    this.#ackDeadline = Infinity;
  }
}
