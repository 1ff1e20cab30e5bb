import { type GrpcDoor, serveWithGrpcJs } from '../grpc/grpc-js-door';
import { SHOULD_RATE_LIMIT, shouldRateLimit } from '../grpc/rate-limit/rate-limit-service';
import type { Listening } from '../http/serve';
import { serveHttp } from '../http/serve-http';
import type { Settings } from '../settings/settings';
import { SERVICE_ERRORS } from '../statistics/names';
import type { Statistics } from '../statistics/statistics';
import type { Decide } from '../streams/decide';
import type { Health } from '../streams/health';
import type { Log } from '../streams/log';

/** The ports that the service listens on. */
export interface Ports {
  readonly grpc: number;
  readonly http: number;
  readonly debug: number;
}

export interface DoorsOptions {
  readonly decide: Decide;
  readonly health: () => Health;
  readonly statistics: Statistics;
  readonly log: Log;
}

/** The listeners for decisions, which open when the service is ready and are closed one after the other. */
export class Doors {
  #grpc: GrpcDoor | undefined;
  #http: Listening | undefined;

  constructor(
    private readonly settings: Settings,
    private readonly options: DoorsOptions,
  ) {}

  async open(): Promise<Omit<Ports, 'debug'>> {
    const { settings } = this;
    const { decide, health, statistics, log } = this.options;
    const methods = new Map([[SHOULD_RATE_LIMIT, shouldRateLimit(decide, statistics)]]);
    const serviceErrors = statistics.counter(SERVICE_ERRORS);
    this.#http = await serveHttp({
      host: settings.host,
      port: settings.port,
      decide,
      health,
      onMalformed: () => serviceErrors.add(1),
      log,
    });
    this.#grpc = await serveWithGrpcJs(settings.grpcHost, settings.grpcPort, methods);
    return { grpc: this.#grpc.port, http: this.#http.address.port };
  }

  /** Takes no new gRPC calls; resolves when those under way are answered. */
  async drainGrpc(): Promise<void> {
    await this.#grpc?.drain();
  }

  /** Takes no new HTTP requests; resolves when those under way are answered. */
  async closeHttp(): Promise<void> {
    await this.#http?.close();
  }
}
