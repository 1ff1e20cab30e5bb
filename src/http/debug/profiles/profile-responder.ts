import { createServer } from 'node:http';
import { Duplex } from 'node:stream';
import { Router } from '@koa/router';
import Koa from 'koa';
import type { Log } from '../../../streams/ports/log';
import { errorBoundary } from '../../server/error-boundary';
import { logConnectionErrors, notFound } from '../../server/fallbacks';
import { profilesOfProcess, routeProfiles } from './profiles';

/**
 * Responds to requests for profiles of this process that another process has received.
 *
 * @returns a function that returns the response to GET of a path with its query, as the bytes of HTTP. To destroy it ends the request
 */
export function profileResponder(log: Log): (url: string) => Duplex {
  const router = new Router({ sensitive: true, strict: true });
  routeProfiles(
    router,
    profilesOfProcess(() => process.availableMemory()),
  );
  const app = new Koa();
  app.on('error', logConnectionErrors(log));
  app.use(errorBoundary(log)).use(router.routes()).use(notFound([]));
  const server = createServer(app.callback());
  return (url) => {
    const exchange = new Exchange();
    server.emit('connection', exchange.serverEnd);
    exchange.write(`GET ${url} HTTP/1.1\r\nHost: worker\r\nConnection: close\r\n\r\n`);
    return exchange;
  };
}

/** A connection within the process: what one end writes, the other reads. */
class Exchange extends Duplex {
  readonly serverEnd: Duplex;
  #resume: () => void = () => undefined;

  constructor() {
    super();
    this.serverEnd = new Duplex({
      read: () => undefined,
      write: (bytes, _encoding, done) => {
        if (this.push(bytes)) done();
        else this.#resume = done;
      },
      // After the end of the response, or without it when the server fails.
      destroy: (error, done) => {
        this.push(null);
        done(error);
      },
    });
  }

  override _read(): void {
    const resume = this.#resume;
    this.#resume = () => undefined;
    // The server may write again at once.
    resume();
  }

  override _write(bytes: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.serverEnd.push(bytes);
    done();
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.serverEnd.destroy();
    done(error);
  }
}
