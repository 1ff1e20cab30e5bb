import { watch as watchPath } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { watch as watchTree } from 'chokidar';
import {
  Observable,
  Subject,
  debounceTime,
  defer,
  distinctUntilChanged,
  merge,
  startWith,
  switchMap,
  tap,
  timer,
} from 'rxjs';
import { codeOf } from '../../text/thrown';
import { exhaustMapWithTrailing } from '../../streams/exhaust-map-with-trailing';
import { ConditionLog } from '../../log/condition-log';
import type { Log } from '../../log/log';
import type { Settings } from '../../settings/settings';
import type { RuleSource } from '../../streams/ports/rule-source';
import type { FolderLook } from './look-at-folder';
import { PendingChange, type ReadTiming, RuleReader, type RuleReaderOptions } from './rule-reader';

export interface RuleFileOptions extends RuleReaderOptions {
  readonly settings: RuleReaderOptions['settings'] &
    Pick<Settings, 'runtimeRoot' | 'runtimeSubdirectory' | 'runtimeAppdirectory'>;
  readonly log: Log;
  readonly timing?: RuleFileTiming;
}

/** In milliseconds. */
export interface RuleFileTiming extends ReadTiming {
  /** From one look at the folder to the next. */
  readonly poll: number;
  /** Without a hint after which a burst of them causes a look. */
  readonly quiet: number;
  /** After which a change that has not been loaded is logged. */
  readonly late: number;
}

/** A change is active within 2 s, also on file systems without change notification: `forced`, and one poll. */
export const TIMING: RuleFileTiming = { poll: 900, hold: 800, forced: 1_100, quiet: 100, late: 5_000 };

const WATCH_ERRORS: Readonly<Record<string, string>> = {
  ENOSPC: 'ENOSPC: fs.inotify.max_user_watches is exhausted',
  EMFILE: 'EMFILE: fs.inotify.max_user_instances or the limit of open files is exhausted',
};

/**
 * Rules from files. The folder is looked at about once a second; a look that finds it as it was emits nothing. A change
 * notification of the file system only causes a look at once.
 *
 * A change is read when two looks, about a second apart, have found files of the same sizes, so that a file that is
 * being written is not read; and as it is within two seconds, whatever else changes. A switched link is complete by
 * construction and read at once. Rules that return after a rejection are emitted again, with the same `Ruleset` object.
 * A change that leaves all contents the same (other permissions or times, the same bytes written again) repeats the
 * last event, marked so.
 */
export function ruleFileSource(options: RuleFileOptions): RuleSource {
  const { settings, log, timing = TIMING } = options;
  const root = resolve(settings.runtimeRoot);
  // Each of them is below the one before, also when it begins with a slash.
  const dir = resolve(join(root, settings.runtimeSubdirectory, settings.runtimeAppdirectory));
  const events$ = defer(() => {
    const change = new PendingChange(timing);
    const reader = new RuleReader(dir, options, change);
    const folders = new Subject<FolderLook | undefined>();
    let isWarned = false;
    function warn(code: string): void {
      if (isWarned) return;
      isWarned = true;
      log.warn('changes of rule files are noticed only by polling', { reason: WATCH_ERRORS[code] ?? code });
    }
    const hints$ = folders.pipe(
      startWith(undefined),
      // A watch stays on the folder that its path has led to.
      distinctUntilChanged((before, now) => before?.folder === now?.folder && before?.inode === now?.inode),
      switchMap((found) => {
        const rootHints$ = nameHints(root, warn);
        return found === undefined ? rootHints$ : merge(rootHints$, folderHints(found.folder, warn));
      }),
      tap(() => change.hinted(performance.now())),
      debounceTime(timing.quiet),
    );
    const late = new ConditionLog(log, {
      begins:
        'a change of the rule files has not been loaded for more than 5 s: loading them takes long, ' +
        'or they are switched all the time',
      ends: 'the change of the rule files is loaded or rejected',
    });
    return hints$.pipe(
      startWith(undefined),
      switchMap(() => timer(0, timing.poll)),
      tap(() => (change.waiting(performance.now()) > timing.late ? late.occurred() : late.ended())),
      exhaustMapWithTrailing(() => reader.look((folder) => folders.next(folder))),
    );
  });
  return { events$ };
}

/**
 * Emits when the file system gives notice of a change in a folder or its subfolders. A hint, no more: there is none on
 * file systems without change notification, in a folder that is created again, or when resources are exhausted. Never
 * fails and never completes.
 *
 * @param folder a real path: what a switched link leads to would not be watched
 * @param onError receives the code of each error
 */
function folderHints(folder: string, onError: (code: string) => void): Observable<unknown> {
  return new Observable((subscriber) => {
    const watcher = watchTree(folder, {
      ignoreInitial: true,
      atomic: false,
      ignorePermissionErrors: true,
      followSymlinks: false,
      // A watch on a folder covers its files, and costs little of the limits of inotify.
      ignored: (_, stats) => stats !== undefined && !stats.isDirectory(),
    });
    // The other events do not include files, which are ignored.
    watcher.on('raw', (event) => subscriber.next(event));
    watcher.on('error', (error) => onError(codeOf(error)));
    return () => {
      void watcher.close();
      // Closing removes the listeners, and an error of a scan in flight without a listener would end the process.
      watcher.on('error', () => undefined);
    };
  });
}

/** Emits when the name at the end of a path may lead elsewhere. As {@link folderHints}, a hint. */
function nameHints(path: string, onError: (code: string) => void): Observable<unknown> {
  return new Observable((subscriber) => {
    try {
      // Without chokidar, which examines everything in the folder.
      const watcher = watchPath(dirname(path));
      watcher.on('change', (event, name) => {
        if (name === null || name === basename(path)) subscriber.next(event);
      });
      watcher.on('error', (error) => onError(codeOf(error)));
      return () => watcher.close();
    } catch (error) {
      // A missing folder is no reason for a warning of its own: the rules are missing, too.
      if (codeOf(error) !== 'ENOENT') onError(codeOf(error));
      return undefined;
    }
  });
}
