import { ConnectionSender } from './connection-sender';
import { endedLines } from './ended-lines';

export interface TcpSenderOptions {
  readonly host: string;
  readonly port: number;
  /** As {@link ConnectionSender} has it. */
  readonly patience?: number;
}

/** Lines over TCP. */
export class TcpSender extends ConnectionSender {
  constructor({ host, port, patience }: TcpSenderOptions) {
    super({
      destination: `tcp://${host}:${port}`,
      address: { host, port, noDelay: true, keepAlive: true },
      write: endedLines,
      patience,
    });
  }
}
