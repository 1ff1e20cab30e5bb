import { X509Certificate } from 'node:crypto';
import {
  type Observable,
  ReplaySubject,
  type SchedulerLike,
  Subscription,
  asyncScheduler,
  concat,
  distinctUntilChanged,
  exhaustMap,
  filter,
  firstValueFrom,
  map,
  of,
  scan,
  switchMap,
  throttleTime,
  timer,
} from 'rxjs';
import {
  type Contents,
  MAX_TLS_FILE_BYTES,
  type NamedFile,
  checkedContext,
  filesOf,
  reloadedFiles,
} from '../net/reloaded-files';
import type { LoadedSettings } from '../settings/read-settings';
import { TLS_FILES } from '../settings/settings';
import type { Statistics } from '../statistics/statistics';
import { NO_TAGS, type Tags, joinTags } from '../statistics/tags';
import { ConditionLog } from '../log/condition-log';
import type { Log, LogFields } from '../log/log';
import { counted } from '../text/counted';
import { messageOf } from '../text/thrown';

/** PEM texts: a certificate, its key, and the authority of the clients. */
export interface Certificates {
  readonly cert: string;
  readonly key: string;
  readonly clientCa: string | undefined;
}

/** The certificates in the files, or one sentence that says why they cannot be used, without any part of a key. */
export type CertificateEvent = Certificates | { readonly rejected: string };

type FileName = 'cert' | 'key' | 'clientCa';

/** In milliseconds. */
export interface CertificateTiming {
  /** Between two looks at the files. */
  readonly poll: number;
  /** Before files that were rejected are read again: a certificate and its key are written one after the other. */
  readonly recheck: number;
}

const TIMING: CertificateTiming = { poll: 1_000, recheck: 500 };
const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const LONGEST_LEAD = 30 * DAY;

/**
 * Emits the certificates in these files on subscribe, then on every change, which includes a link on the path being
 * switched, as in a mounted Kubernetes secret. Each event differs from the previous one. Never fails and never
 * completes.
 *
 * A certificate that has expired or is not valid yet is rejected as the replacement of another one; one that is not
 * valid yet is emitted when it becomes valid. The first one is emitted whatever its validity, because there is none to
 * keep.
 */
export function certificateSource(
  files: Readonly<Record<FileName, NamedFile | undefined>>,
  scheduler: SchedulerLike = asyncScheduler,
  { poll, recheck } = TIMING,
): Observable<CertificateEvent> {
  const read = reloadedFiles(files, (contents, last?: Certificates) =>
    checkedCertificates(contents, last, scheduler.now()),
  );
  function look(): CertificateEvent {
    try {
      return read();
    } catch (error) {
      return { rejected: messageOf(error) };
    }
  }
  return timer(0, poll, scheduler).pipe(
    exhaustMap(() => {
      const event = look();
      return 'rejected' in event ? timer(recheck, scheduler).pipe(map(look)) : of(event);
    }),
    distinctUntilChanged((before, now) =>
      'rejected' in before && 'rejected' in now ? before.rejected === now.rejected : before === now,
    ),
  );
}

/** @param now in milliseconds since 1970 */
function checkedCertificates(
  { cert, key, clientCa }: Contents<FileName>,
  last: Certificates | undefined,
  now: number,
): Certificates {
  const files = [cert, key, clientCa].filter((file) => file !== undefined);
  // In base64, the texts fit into one frame to a worker. Of the decoded texts: a byte that is not UTF-8 becomes three.
  const bytes = files.reduce((sum, { text }) => sum + Buffer.byteLength(text), 0);
  if (bytes > MAX_TLS_FILE_BYTES) {
    const names = files.map(({ name }) => name).join(' and ');
    throw new Error(`${names} have ${bytes} bytes together, more than the limit of ${MAX_TLS_FILE_BYTES}`);
  }
  checkedContext({ cert, key, ca: clientCa });
  // The one in use may have expired in the meantime.
  if (last !== undefined && cert?.text !== last.cert) {
    const { from, until } = validityOf(cert?.text ?? '');
    if (until <= now) throw new Error(`${cert?.name} has expired: it was valid until ${timeOf(until)}`);
    if (from > now) throw new Error(`${cert?.name} is not valid before ${timeOf(from)}`);
  }
  return { cert: cert?.text ?? '', key: key?.text ?? '', clientCa: clientCa?.text };
}

/** @param time in milliseconds since 1970 */
function timeOf(time: number): string {
  return new Date(time).toISOString();
}

/** When a certificate is valid, in milliseconds since 1970. */
interface Validity {
  readonly from: number;
  readonly until: number;
}

/** The validity of the first certificate of a chain in PEM format. */
function validityOf(chain: string): Validity {
  const { validFrom, validTo } = new X509Certificate(chain);
  return { from: Date.parse(validFrom), until: Date.parse(validTo) };
}

/**
 * Emits the milliseconds that are left, negative after the expiry, from 30 days before a certificate expires: on
 * subscribe or when that time comes, then once a day. Certificates that are valid for less than 90 days are renewed
 * later: for these it is a third of their validity. Never completes.
 */
function expiryWarnings({ from, until }: Validity, scheduler: SchedulerLike): Observable<number> {
  const lead = Math.min(LONGEST_LEAD, (until - from) / 3);
  return timer(0, HOUR, scheduler).pipe(
    map(() => until - scheduler.now()),
    filter((left) => left <= lead),
    throttleTime(DAY, scheduler),
  );
}

type Warning = readonly [message: string, fields: LogFields];

/** The listeners that can have TLS, as messages name them. */
export type TlsListenerName = 'gRPC' | 'debug';

/**
 * Emits what is to be known of the validity of each certificate in use. Unsubscribes from the warnings of the one
 * before.
 */
export function validityWarnings(
  listener: TlsListenerName,
  validity$: Observable<Validity>,
  scheduler: SchedulerLike = asyncScheduler,
): Observable<Warning> {
  let hasWarned = false;
  return validity$.pipe(
    switchMap((validity) => {
      const { from, until } = validity;
      const expires = { expires: timeOf(until) };
      const warnings: Warning[] = [];
      // The end of a warning; a replacement that expires soon, too, causes another one.
      if (hasWarned) warnings.push([`the certificate of the ${listener} listener was replaced`, expires]);
      hasWarned = false;
      // Only the certificate at start can be one that is not valid yet.
      if (from > scheduler.now()) {
        warnings.push([`the certificate of the ${listener} listener is not valid yet`, { valid_from: timeOf(from) }]);
      }
      const expiry$ = expiryWarnings(validity, scheduler).pipe(
        map((left): Warning => {
          hasWarned = true;
          const message =
            left <= 0
              ? `the certificate of the ${listener} listener has expired`
              : `the certificate of the ${listener} listener expires in ${counted(Math.floor(left / DAY), 'day')}`;
          return [message, expires];
        }),
      );
      return concat(warnings, expiry$);
    }),
  );
}

type CertificateParts = Pick<LoadedSettings, 'settings' | 'nameOf'> & {
  readonly statistics: Statistics;
  readonly log: Log;
};

/** What the listener is opened with. */
export interface ListenerTls extends Certificates {
  /** The name that the certificates of clients must contain, if any. */
  readonly clientName: string | undefined;
}

/** The certificates of a listener, which can be replaced while it is open. */
export class ListenerCertificates {
  readonly #listener: TlsListenerName;
  readonly #clientName: string | undefined;
  /** The certificates in use; before there are any, why not. */
  readonly #current$ = new ReplaySubject<CertificateEvent>(1);
  readonly #loaded$ = this.#current$.pipe(filter((current): current is Certificates => !('rejected' in current)));
  readonly #subscriptions = new Subscription();
  /** The certificates that {@link first} has returned. */
  #first: Certificates | undefined;

  /** @param events$ default: those of the files in the settings */
  constructor(
    parts: CertificateParts,
    listener: TlsListenerName,
    events$: Observable<CertificateEvent> = certificateEvents(parts, listener),
  ) {
    const { settings, statistics, log } = parts;
    this.#listener = listener;
    this.#clientName = listener === 'gRPC' ? settings.grpcClientTlsSan : undefined;
    // The first ones are those of the Go service.
    const tags: Tags = listener === 'gRPC' ? NO_TAGS : { listener };
    const attempts = statistics.counter(joinTags('certs.load_attempts', tags));
    const failures = statistics.counter(joinTags('certs.load_failures', tags));
    const rejected = new ConditionLog(log, {
      begins: `new certificates of the ${listener} listener rejected; keeping the current ones`,
      ends: `the certificates of the ${listener} listener are valid again`,
      level: 'error',
    });
    function currentAfter(current: CertificateEvent, event: CertificateEvent): CertificateEvent {
      attempts.add(1);
      if ('rejected' in event) failures.add(1);
      // Rejected certificates at start are the error of `first`.
      if ('rejected' in current) return event;
      if ('rejected' in event) {
        rejected.because(event.rejected);
        return current;
      }
      rejected.ended();
      if (event !== current) log.info(`new certificates of the ${listener} listener loaded`);
      return event;
    }
    let validity: Validity | undefined;
    statistics.gauge('certs.expires_at', () => Math.floor((validity?.until ?? 0) / 1000), tags);
    const validity$ = this.#loaded$.pipe(map(({ cert }) => (validity = validityOf(cert))));
    this.#subscriptions.add(validityWarnings(listener, validity$).subscribe((warning) => log.warn(...warning)));
    // From now on, because the files can change long before the listener opens.
    const current$ = events$.pipe(scan(currentAfter, { rejected: 'no certificate' }), distinctUntilChanged());
    this.#subscriptions.add(current$.subscribe(this.#current$));
  }

  /**
   * The certificates that were loaded last, to open the listener with.
   *
   * @throws when none could be loaded since the start: the service does not start without them
   */
  async first(): Promise<ListenerTls> {
    const current = await firstValueFrom(this.#current$);
    if ('rejected' in current) throw new Error(`TLS of the ${this.#listener} listener: ${current.rejected}`);
    this.#first = current;
    return { ...current, clientName: this.#clientName };
  }

  /**
   * Applies every change since {@link first} to the server, which keeps its certificates when new ones are rejected.
   */
  follow(server: { replaceTls(tls: ListenerTls): void }): void {
    const changes$ = this.#loaded$.pipe(filter((loaded, index) => index > 0 || loaded !== this.#first));
    this.#subscriptions.add(
      changes$.subscribe((loaded) => server.replaceTls({ ...loaded, clientName: this.#clientName })),
    );
  }

  close(): void {
    this.#subscriptions.unsubscribe();
  }
}

function certificateEvents(parts: CertificateParts, listener: TlsListenerName): Observable<CertificateEvent> {
  // The check of the settings has required the certificate and its key with TLS.
  const { ca: clientCa, cert, key } = filesOf(parts, TLS_FILES[listener === 'gRPC' ? 'grpc' : 'debug']);
  return certificateSource({ cert, key, clientCa });
}
