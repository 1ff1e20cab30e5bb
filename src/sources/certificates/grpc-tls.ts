import { resolve } from 'node:path';
import {
  type Observable,
  Subscription,
  distinctUntilChanged,
  filter,
  firstValueFrom,
  map,
  pairwise,
  scan,
  shareReplay,
  skipWhile,
  startWith,
  switchMap,
} from 'rxjs';
import type { LoadedSettings } from '../../settings/read-settings';
import { type CertificateEvent, certificateSource } from './certificate-source';
import { type Validity, expiryWarnings, validityOf } from './expiry-warnings';
import type { Certificates } from './read-certificates';
import type { Counter } from '../../statistics/counter';
import type { Statistics } from '../../statistics/statistics';
import type { Log, LogFields } from '../../streams/ports/log';

const DAY = 24 * 60 * 60 * 1000;

type CertificateParts = Pick<LoadedSettings, 'settings' | 'nameOf'> & {
  readonly statistics: Statistics;
  readonly log: Log;
};

/** What the listener is opened with. */
export interface ListenerTls extends Certificates {
  /** The name that the certificates of clients must contain, if any. */
  readonly clientName: string | undefined;
}

interface CertificateState {
  /** The certificates that were loaded last. */
  readonly loaded: Certificates | undefined;
  /** Why the files cannot be used as they are now. */
  readonly rejection: string | undefined;
}

const NOTHING_READ: CertificateState = { loaded: undefined, rejection: undefined };

/** The certificates of the gRPC listener, which can be replaced while it is open. */
export class GrpcTls {
  readonly #attempts: Counter;
  readonly #failures: Counter;
  readonly #log: Log;
  readonly #state$: Observable<CertificateState>;
  readonly #loaded$: Observable<Certificates>;
  readonly #subscriptions = new Subscription();
  readonly #clientName: string | undefined;
  #first: Certificates | undefined;
  #validity: Validity | undefined;
  #hasWarned = false;

  /** @param events$ default: those of the files in the settings */
  constructor(parts: CertificateParts, events$: Observable<CertificateEvent> = certificateEvents(parts)) {
    const { settings, statistics, log } = parts;
    this.#attempts = statistics.counter('certs.load_attempts');
    this.#failures = statistics.counter('certs.load_failures');
    this.#log = log;
    this.#clientName = settings.grpcClientTlsSan;
    this.#state$ = events$.pipe(scan(stateAfter, NOTHING_READ), shareReplay({ bufferSize: 1, refCount: true }));
    this.#loaded$ = this.#state$.pipe(
      map(({ loaded }) => loaded),
      filter((loaded) => loaded !== undefined),
      distinctUntilChanged(),
    );
    this.#subscriptions.add(
      this.#loaded$
        .pipe(
          switchMap(({ cert }) => {
            this.#validity = validityOf(cert);
            this.#logReplacement();
            this.#warnOfFuture(this.#validity);
            return expiryWarnings(this.#validity);
          }),
        )
        .subscribe((left) => this.#warnOfExpiry(left)),
    );
    // From now on, because the files can change long before the listener opens.
    this.#subscriptions.add(
      this.#state$.pipe(startWith(NOTHING_READ), pairwise()).subscribe(([before, now]) => this.#report(before, now)),
    );
  }

  /** When the certificate in use expires, in Unix seconds; 0 before it is loaded. */
  get expiresAt(): number {
    return Math.floor((this.#validity?.until ?? 0) / 1000);
  }

  /**
   * The certificates that were loaded last, to open the listener with.
   *
   * @throws when none could be loaded since the start: the service does not start without them
   */
  async first(): Promise<ListenerTls> {
    const { loaded, rejection } = await firstValueFrom(this.#state$);
    if (loaded === undefined) throw new Error(`TLS of the gRPC listener: ${rejection}`);
    this.#first = loaded;
    return this.#serverTls(loaded);
  }

  /** Applies every change since {@link first} to the server, which keeps its certificates when new ones are rejected. */
  follow(server: { replaceTls(tls: ListenerTls): void }): void {
    this.#subscriptions.add(
      this.#loaded$
        .pipe(skipWhile((certificates) => certificates === this.#first))
        .subscribe((certificates) => server.replaceTls(this.#serverTls(certificates))),
    );
  }

  close(): void {
    this.#subscriptions.unsubscribe();
  }

  /** The end of a warning; a replacement that expires soon, too, causes another one. */
  #logReplacement(): void {
    if (this.#hasWarned) this.#log.notice('the certificate of the gRPC listener was replaced', this.#expiry());
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

  #serverTls(certificates: Certificates): ListenerTls {
    return { ...certificates, clientName: this.#clientName };
  }

  #report(before: CertificateState, { rejection }: CertificateState): void {
    this.#attempts.add(1);
    if (rejection !== undefined) this.#failures.add(1);
    // Rejected certificates at start are the error of `first`.
    if (before.loaded === undefined) return;
    if (rejection !== undefined) {
      this.#log.error(`new certificates of the gRPC listener rejected; keeping the current ones: ${rejection}`);
    } else if (before.rejection === undefined) this.#log.info('new certificates of the gRPC listener loaded');
    else this.#log.notice('the certificates of the gRPC listener are valid again');
  }
}

function certificateEvents({ settings, nameOf }: CertificateParts): Observable<CertificateEvent> {
  const { grpcServerTlsCert, grpcServerTlsKey, grpcClientTlsCacert } = settings;
  return certificateSource({
    // The check of the settings has required both of them with TLS.
    cert: resolve(grpcServerTlsCert ?? ''),
    key: resolve(grpcServerTlsKey ?? ''),
    clientCa: grpcClientTlsCacert === undefined ? undefined : resolve(grpcClientTlsCacert),
    variables: {
      cert: nameOf('grpcServerTlsCert'),
      key: nameOf('grpcServerTlsKey'),
      clientCa: nameOf('grpcClientTlsCacert'),
    },
  });
}

function stateAfter({ loaded }: CertificateState, event: CertificateEvent): CertificateState {
  return event.kind === 'loaded'
    ? { loaded: event.certificates, rejection: undefined }
    : { loaded, rejection: event.reason };
}
