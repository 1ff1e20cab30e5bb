import {
  type Observable,
  type SchedulerLike,
  asyncScheduler,
  defer,
  distinctUntilChanged,
  finalize,
  merge,
  of,
  repeat,
  switchMap,
  timer,
} from 'rxjs';
import { exhaustMapWithTrailing } from '../watching/exhaust-map-with-trailing';
import { FolderWatches, type WatchPoint, type WatchPoints } from '../watching/folder-watches';
import { settleHints } from '../watching/settle-hints';
import { Tracker, identityOf } from '../watching/symlink-trail';
import { type CertificateFiles, type Certificates, readCertificates } from './read-certificates';
import { messageOf } from '../../text/thrown';

export type CertificateEvent =
  | { readonly kind: 'loaded'; readonly certificates: Certificates }
  /** What is there now cannot be used; `reason` is one sentence and holds nothing of a key. */
  | { readonly kind: 'rejected'; readonly reason: string };

const SETTLING = { quiet: 100, longest: 1000 };
/** A certificate and its key are two files: one is written before the other. What does not fit is looked at again. */
const HOLD = 500;
/** For file systems that tell nothing of changes, in milliseconds. */
const POLL = 10_000;

/**
 * The certificates in these files: what is there when it is subscribed to, then every change, also when a link on the way is
 * switched, as Kubernetes does with a mounted secret. Each event differs from the one before it. Never fails, and does not
 * complete by itself; unsubscribing lets go of the watches.
 */
export function certificateSource(
  files: CertificateFiles,
  scheduler: SchedulerLike = asyncScheduler,
): Observable<CertificateEvent> {
  return defer(() => {
    const watches = new FolderWatches();
    const look$ = defer(() => armAndRead(files, watches));
    const surely$ = look$.pipe(
      switchMap((seen) => (seen.kind === 'loaded' ? of(seen) : timer(HOLD, scheduler).pipe(switchMap(() => look$)))),
    );
    return merge(
      of(undefined),
      watches.hints$.pipe(settleHints(SETTLING, scheduler)),
      timer(POLL, scheduler).pipe(repeat()),
    ).pipe(
      exhaustMapWithTrailing(() => surely$),
      distinctUntilChanged((before, now) => markOf(before) === markOf(now)),
      finalize(() => watches.close()),
    );
  });
}

/** Watches the way to every file, then reads: a change after that gives a hint. */
async function armAndRead(files: CertificateFiles, watches: FolderWatches): Promise<CertificateEvent> {
  watches.arm(await watchPoints(Object.values(files).filter((path) => path !== undefined)));
  try {
    return { kind: 'loaded', certificates: await readCertificates(files) };
  } catch (error) {
    return { kind: 'rejected', reason: messageOf(error) };
  }
}

async function watchPoints(paths: readonly string[]): Promise<WatchPoints> {
  const tracker = new Tracker();
  const names = new Map<string, Set<string>>();
  for (const path of paths) {
    for (const { folder, name } of (await tracker.follow(path)).lookups) {
      names.set(folder, (names.get(folder) ?? new Set()).add(name));
    }
  }
  const points = new Map<string, WatchPoint>();
  for (const [folder, wanted] of names) {
    const entry = await tracker.entry(folder);
    if (typeof entry !== 'string') points.set(folder, { identity: identityOf(entry), names: wanted });
  }
  return points;
}

function markOf(event: CertificateEvent): string {
  if (event.kind === 'rejected') return event.reason;
  const { cert, key, clientCa } = event.certificates;
  return [cert, key, clientCa].join('\n');
}
