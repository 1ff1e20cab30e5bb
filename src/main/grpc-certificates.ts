import { resolve } from 'node:path';
import { type Observable, Subscription, filter, firstValueFrom, shareReplay, skip, switchMap } from 'rxjs';
import type { ServerTls } from '../grpc/http2/tls/tls-options';
import type { GrpcServer } from '../grpc/server/grpc-server';
import type { LoadedSettings } from '../settings/read-settings';
import { type CertificateEvent, certificateSource } from '../sources/certificates/certificate-source';
import { type Validity, expiryWarnings, validityOf } from '../sources/certificates/expiry-warnings';
import type { Certificates } from '../sources/certificates/read-certificates';
import type { Counter } from '../statistics/counter';
import type { Statistics } from '../statistics/statistics';
import type { Log, LogFields } from '../streams/ports/log';

const DAY = 24 * 60 * 60 * 1000;

/** The certificates of the gRPC listener, which can be replaced while it is open. */
export class GrpcTls {
  readonly #attempts: Counter;
  readonly #failures: Counter;
  readonly #log: Log;
  readonly #events$: Observable<CertificateEvent>;
  readonly #subscriptions = new Subscription();
  readonly #clientName: string | undefined;
  #validity: Validity | undefined;
  #hasWarned = false;

  constructor({ settings, nameOf }: LoadedSettings, statistics: Statistics, log: Log) {
    this.#attempts = statistics.counter('certs.load_attempts');
    this.#failures = statistics.counter('certs.load_failures');
    this.#log = log;
    const { grpcServerTlsCert, grpcServerTlsKey, grpcClientTlsCacert, grpcClientTlsSan } = settings;
    this.#clientName = grpcClientTlsSan;
    this.#events$ = certificateSource({
      // The check of the settings has required both of them with TLS.
      cert: resolve(grpcServerTlsCert ?? ''),
      key: resolve(grpcServerTlsKey ?? ''),
      clientCa: grpcClientTlsCacert === undefined ? undefined : resolve(grpcClientTlsCacert),
      variables: {
        cert: nameOf('grpcServerTlsCert'),
        key: nameOf('grpcServerTlsKey'),
        clientCa: nameOf('grpcClientTlsCacert'),
      },
    }).pipe(shareReplay({ bufferSize: 1, refCount: true }));
    this.#subscriptions.add(
      this.#events$
        .pipe(
          filter((event) => event.kind === 'loaded'),
          switchMap(({ certificates }) => {
            this.#validity = validityOf(certificates.cert);
            this.#logReplacement();
            this.#warnOfFuture(this.#validity);
            return expiryWarnings(this.#validity);
          }),
        )
        .subscribe((left) => this.#warnOfExpiry(left)),
    );
  }

  /** When the certificate in use expires, in Unix seconds; 0 before it is loaded. */
  get expiresAt(): number {
    return Math.floor((this.#validity?.until ?? 0) / 1000);
  }

  /**
   * The certificates at start.
   *
   * @throws when they cannot be used: the service does not start without them
   */
  async first(): Promise<ServerTls> {
    const event = await firstValueFrom(this.#events$);
    this.#count(event);
    if (event.kind === 'rejected') throw new Error(`TLS of the gRPC listener: ${event.reason}`);
    return this.#serverTls(event.certificates);
  }

  /** Applies every later change to the server. Certificates that cannot be used are rejected and logged; the server keeps its own. */
  follow(server: Pick<GrpcServer, 'replaceTls'>): void {
    let isRejected = false;
    this.#subscriptions.add(
      this.#events$.pipe(skip(1)).subscribe((event) => {
        this.#count(event);
        if (event.kind === 'rejected') {
          this.#log.error(`new certificates of the gRPC listener rejected; keeping the current ones: ${event.reason}`);
          isRejected = true;
          return;
        }
        server.replaceTls(this.#serverTls(event.certificates));
        if (isRejected) this.#log.error('the certificates of the gRPC listener are valid again');
        else this.#log.info('new certificates of the gRPC listener loaded');
        isRejected = false;
      }),
    );
  }

  close(): void {
    this.#subscriptions.unsubscribe();
  }

  /** The end of a warning; a replacement that expires soon, too, causes another one. */
  #logReplacement(): void {
    if (this.#hasWarned) this.#log.warn('the certificate of the gRPC listener was replaced', this.#expiry());
    this.#hasWarned = false;
  }

  /** Only the certificate at start can be one that is not valid yet. */
  #warnOfFuture({ from }: Validity): void {
    if (from <= Date.now()) return;
    const fields = { valid_from: new Date(from).toISOString() };
    this.#log.warn('the certificate of the gRPC listener is not valid yet', fields);
  }

  #warnOfExpiry(left: number): void {
    this.#hasWarned = true;
    const days = Math.floor(left / DAY);
    const message =
      left <= 0
        ? 'the certificate of the gRPC listener has expired'
        : `the certificate of the gRPC listener expires in ${days} ${days === 1 ? 'day' : 'days'}`;
    this.#log.warn(message, this.#expiry());
  }

  #expiry(): LogFields {
    return { expires: new Date(this.expiresAt * 1000).toISOString() };
  }

  #serverTls({ cert, key, clientCa }: Certificates): ServerTls {
    return { cert, key, clientCa, clientName: this.#clientName };
  }

  #count({ kind }: CertificateEvent): void {
    this.#attempts.add(1);
    if (kind === 'rejected') this.#failures.add(1);
  }
}
