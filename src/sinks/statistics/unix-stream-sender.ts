import { ConnectionSender } from './connection-sender';
import { endedLines } from './ended-lines';
import { lengthPrefixed } from './length-prefixed';

export interface UnixStreamSenderOptions {
  /** Of the socket that the daemon listens on. */
  readonly path: string;
  /** Lines that each end in a newline, or packets as the Datadog agent takes them. */
  readonly framing: 'lines' | 'packets';
  /** As {@link ConnectionSender} has it. */
  readonly patience?: number;
}

/** Lines over a stream socket of this machine. */
export class UnixStreamSender extends ConnectionSender {
  constructor({ path, framing, patience }: UnixStreamSenderOptions) {
    super({
      destination: `unixstream://${path}`,
      address: { path },
      write: framing === 'packets' ? lengthPrefixed : endedLines,
      patience,
    });
  }
}
