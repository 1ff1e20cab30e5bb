import { type FSWatcher, watch } from 'node:fs';
import { basename } from 'node:path';
import { Subject } from 'rxjs';
import { codeOf } from './fs-error';
import type { WatchPoint, WatchPoints } from './watch-points';

interface Watch {
  readonly folder: string;
  readonly watcher: FSWatcher;
  readonly identity: string;
  names: ReadonlySet<string> | undefined;
  /**
   * The folder was moved, removed or unmounted: the watch covers the wrong folder, or none. The identity alone does not show
   * this on file systems without creation times, nor when the same volume is mounted again.
   */
  isStale: boolean;
}

/**
 * One watch per folder, never recursive: on Linux a recursive watch misses renames over a file, switched links, and every
 * error. Watches keep the process alive until they are closed.
 */
export class FolderWatches {
  readonly #hints = new Subject<void>();
  readonly #watches = new Map<string, Watch>();
  readonly #failures = new Map<string, string>();
  #isClosed = false;

  /** Emits when something may have changed. Completes on {@link close}. */
  readonly hints$ = this.#hints.asObservable();

  /**
   * Watches these points and no others.
   *
   * @returns whether any watch is new: earlier changes in that folder may have been missed, so scan again.
   */
  arm(points: WatchPoints): boolean {
    if (this.#isClosed) return false;
    for (const [folder, { watcher, identity, isStale }] of this.#watches) {
      if (!isStale && points.get(folder)?.identity === identity) continue;
      watcher.close();
      this.#watches.delete(folder);
    }
    this.#failures.clear();
    let isNew = false;
    for (const [folder, point] of points) {
      const present = this.#watches.get(folder);
      if (present === undefined) isNew = this.#add(folder, point) || isNew;
      else present.names = point.names;
    }
    return isNew;
  }

  close(): void {
    this.#isClosed = true;
    for (const { watcher } of this.#watches.values()) watcher.close();
    this.#watches.clear();
    this.#hints.complete();
  }

  /** Why folders that should be watched are not: one sentence per error code. */
  get warnings(): readonly string[] {
    const foldersByCode = new Map<string, string[]>();
    for (const [folder, code] of this.#failures) {
      const folders = foldersByCode.get(code);
      if (folders === undefined) foldersByCode.set(code, [folder]);
      else folders.push(folder);
    }
    return Array.from(foldersByCode, ([code, folders]) => describe(code, folders));
  }

  #add(folder: string, { identity, names }: WatchPoint): boolean {
    try {
      const watcher = watch(folder);
      const added: Watch = { folder, watcher, identity, names, isStale: false };
      watcher.on('change', (event, name) => this.#onChange(added, event, name));
      watcher.on('error', () => {
        added.isStale = true;
        this.#hints.next();
      });
      this.#watches.set(folder, added);
      return true;
    } catch (error) {
      const code = codeOf(error);
      // The folder was removed after it was found: the next scan shows what replaced it.
      if (code === 'ENOENT' || code === 'ENOTDIR') return true;
      this.#failures.set(folder, code);
      return false;
    }
  }

  #onChange(changed: Watch, event: string, name: string | Buffer | null): void {
    const isFolderItself = name === basename(changed.folder);
    if (isFolderItself && event === 'rename') changed.isStale = true;
    if (isFolderItself || typeof name !== 'string' || changed.names === undefined || changed.names.has(name)) {
      this.#hints.next();
    }
  }
}

const CAUSES: Readonly<Record<string, string>> = {
  ENOSPC: 'fs.inotify.max_user_watches is exhausted',
  EMFILE: 'fs.inotify.max_user_instances or the limit of open files is exhausted',
  EACCES: 'permission denied',
};

function describe(code: string, folders: readonly string[]): string {
  const [first] = folders;
  const which = folders.length === 1 ? `the folder ${first}` : `${folders.length} folders, including ${first},`;
  const cause = CAUSES[code];
  return `${which} cannot be watched (${cause === undefined ? code : `${code}: ${cause}`}): changes there are detected only by polling`;
}
