import { ConditionLog } from '../../streams/condition-log';
import type { Log, LogFields } from '../../streams/ports/log';
import { messageOf } from '../../text/thrown';
import { type AdsStreamEvent, STABLE_AFTER } from './stream/ads-stream';
import type { AttemptEnd } from './stream/reconnect';

export interface ConnectionLogOptions {
  /** The address of the server. */
  readonly server: string;
  readonly nodeId: string;
  readonly log: Log;
  /** The last accepted version; undefined before the first. */
  readonly version: () => string | undefined;
}

/** Logs changes of the connection to the server: one line per change, not per attempt. */
export class ConnectionLog {
  readonly #options: ConnectionLogOptions;
  /** Why there is no stream; undefined while there is one. */
  #failure: string | undefined;
  #hasResponse = false;
  /** Whether a warning has been logged whose end has not. */
  #isDown = false;
  readonly #silent: ConditionLog;

  constructor(options: ConnectionLogOptions) {
    this.#options = options;
    const { server, nodeId, log } = options;
    this.#silent = new ConditionLog(log, {
      begins: `the xDS server has sent no rules for ${STABLE_AFTER / 1000} s: it may not know this node`,
      ends: 'the xDS server has sent rules',
      fields: { server, node: nodeId },
    });
  }

  streamEvent({ kind }: AdsStreamEvent): void {
    const { server, nodeId, version } = this.#options;
    switch (kind) {
      case 'connected':
        this.#failure = undefined;
        this.#connected({ server, node: nodeId, version: version() });
        break;
      case 'handled':
        this.#hasResponse = true;
        this.#silent.ended();
        break;
      case 'stable':
        if (!this.#hasResponse) this.#silent.occurred();
    }
  }

  /** @param isReported whether the failure has been reported as a rejection already */
  attemptEnd({ error, failures, wait }: AttemptEnd, isReported: boolean): void {
    const { server, log } = this.#options;
    const failure = error === undefined ? 'the server ended the stream' : messageOf(error);
    const fields = { server, wait: `${Math.round(wait)}ms` };
    if (failure === this.#failure || isReported) {
      log.debug(`still no stream from the xDS server: ${failure}`, fields);
    } else if (failures === 0) {
      log.info(`the stream from the xDS server ended; reconnecting: ${failure}`, fields);
    } else {
      this.#isDown = true;
      log.warn(`no stream from the xDS server; keeping the active rules and retrying: ${failure}`, fields);
    }
    this.#failure = failure;
  }

  /** At the level of the line that it ends. */
  #connected(fields: LogFields): void {
    const { log } = this.#options;
    if (this.#isDown) log.notice('connected to the xDS server', fields);
    else log.info('connected to the xDS server', fields);
    this.#isDown = false;
  }
}
