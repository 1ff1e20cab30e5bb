import { ConnectionError } from '../protocol';
import type { PeerSettings } from '../protocol';
import { DEFAULT_HEADER_TABLE_BYTES, DEFAULT_WINDOW_BYTES, ErrorCode, Setting } from '../protocol';
import type { AbuseLimits } from '../limits/abuse-limits';
import type { Limits } from '../limits/limits';
import type { ConnectionControl } from '../streams/connection-control';
import type { SendQueue } from '../streams/send-queue';
import type { Streams } from '../streams/streams';

export interface SettingsExchangeParts<S> {
  readonly control: ConnectionControl;
  readonly limits: Limits;
  readonly abuseLimits: AbuseLimits;
  readonly peerSettings: PeerSettings;
  readonly sendQueue: SendQueue<S>;
  readonly streams: Streams<S>;
  /** How long the peer may take to send its first SETTINGS. */
  readonly prefaceMs: number;
}

/** SETTINGS in both directions (RFC 9113, section 6.5). Ours are sent once; the peer may send its settings at any time. */
export class SettingsExchange<S> {
  readonly #control: ConnectionControl;
  readonly #limits: Limits;
  readonly #abuseLimits: AbuseLimits;
  readonly #peerSettings: PeerSettings;
  readonly #sendQueue: SendQueue<S>;
  readonly #streams: Streams<S>;
  /** Whether the peer has sent its first SETTINGS. */
  hasBegun = false;
  /** Whether the peer has acknowledged our SETTINGS. */
  isAcknowledged = false;
  #prefaceDeadline: number;
  #ackDeadline: number;

  constructor(parts: SettingsExchangeParts<S>) {
    const { control, limits, prefaceMs } = parts;
    this.#control = control;
    this.#limits = limits;
    this.#abuseLimits = parts.abuseLimits;
    this.#peerSettings = parts.peerSettings;
    this.#sendQueue = parts.sendQueue;
    this.#streams = parts.streams;
    this.#prefaceDeadline = control.now + prefaceMs;
    this.#ackDeadline = control.now + prefaceMs + limits.settingsAckMs;
  }

  /** The earliest time at which {@link check} must be called. */
  get deadline(): number {
    return Math.min(this.#prefaceDeadline, this.#ackDeadline);
  }

  check(now: number): void {
    if (now >= this.#prefaceDeadline) {
      this.#control.fail(ErrorCode.SETTINGS_TIMEOUT, 'preface_timeout', 'no SETTINGS in time');
    } else if (now >= this.#ackDeadline) {
      this.#control.fail(ErrorCode.SETTINGS_TIMEOUT, 'settings_timeout', 'SETTINGS not acknowledged');
    }
  }

  /** Sends our SETTINGS, and a WINDOW_UPDATE that enlarges the window of the connection. */
  sendOurs(): void {
    const limits = this.#limits;
    const { writer } = this.#sendQueue;
    writer.settings([
      [Setting.MAX_CONCURRENT_STREAMS, limits.maxConcurrentStreams],
      [Setting.MAX_HEADER_LIST_SIZE, limits.maxHeaderListBytes],
      [Setting.NO_RFC7540_PRIORITIES, 1],
    ]);
    writer.windowUpdate(0, limits.connectionWindowBytes - DEFAULT_WINDOW_BYTES);
  }

  onSettings(source: Buffer, start: number, end: number): void {
    const control = this.#control;
    const abuseLimits = this.#abuseLimits;
    const peer = this.#peerSettings;
    const isFirst = !this.hasBegun;
    this.hasBegun = true;
    this.#prefaceDeadline = Infinity;
    if (isFirst) this.#ackDeadline = control.now + this.#limits.settingsAckMs;
    if (end - start > this.#limits.settingsEntries * 6) {
      throw new ConnectionError(ErrorCode.ENHANCE_YOUR_CALM, 'settings_flood', 'too many settings in one frame');
    }
    abuseLimits.chargeSettings(control.now);
    const before = peer.initialWindowBytes;
    const unknown = peer.apply(source, start, end);
    for (let count = 0; count < unknown; count += 1) abuseLimits.chargeIdleFrame(control.now);
    if (peer.initialWindowBytes !== before) this.#streams.moveSendWindows(peer.initialWindowBytes - before);
    if (peer.smallestHeaderTableBytes < DEFAULT_HEADER_TABLE_BYTES) this.#sendQueue.sendTableSizeUpdate();
    if (control.mayControl()) this.#sendQueue.writer.settingsAck();
  }

  onAck(): void {
    if (this.isAcknowledged) return this.#abuseLimits.chargeFault(this.#control.now);
    this.isAcknowledged = true;
    this.#ackDeadline = Infinity;
  }
}
