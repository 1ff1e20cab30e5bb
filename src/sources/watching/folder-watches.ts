import { type FSWatcher, watch } from 'node:fs';
import { basename } from 'node:path';
import { Subject } from 'rxjs';
import { codeOf } from './symlink-trail';

/** What to watch in one folder. */
export interface WatchPoint {
  /** Which folder was seen at the path: one that takes its place needs a watch of its own. */
  readonly identity: string;
  /** The names whose changes matter; undefined when every name does. */
  readonly names: ReadonlySet<string> | undefined;
}

/** By the real path of the folder. */
export type WatchPoints = ReadonlyMap<string, WatchPoint>;

interface Watch {
  readonly watcher: FSWatcher;
  readonly identity: string;
  names: ReadonlySet<string> | undefined;
  /**
   * The folder it watches has been moved, removed or unmounted: it watches what nobody asks for, or nothing. The identity alone
   * does not tell on file systems that know no time of birth, nor when the same volume is mounted again.
   */
  isStale: boolean;
}

/**
 * One watch a folder, never recursive: on Linux a recursive watch misses renames over a file, switched links, and every
 * error. Watching keeps the process alive.
 */
export class FolderWatches {
  readonly #hints = new Subject<void>();
  readonly #watches = new Map<string, Watch>();
  readonly #failures = new Map<string, string>();
  #isClosed = false;

  /** Emits when something may have changed. Completes when the watches are closed. */
  readonly hints$ = this.#hints.asObservable();

  /**
   * Watches these points and no others.
   *
   * @returns whether any watch is new: what happened in that folder before is unknown then, so look again.
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

  /** Why folders are not watched that should be, one sentence for each reason. */
  get troubles(): readonly string[] {
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
      const added: Watch = { watcher, identity, names, isStale: false };
      watcher.on('change', (event, name) => this.#changed(added, folder, event, name));
      watcher.on('error', () => {
        added.isStale = true;
        this.#hints.next();
      });
      this.#watches.set(folder, added);
      return true;
    } catch (error) {
      const code = codeOf(error);
      // Gone since it was seen: looking again tells.
      if (code === 'ENOENT' || code === 'ENOTDIR') return true;
      this.#failures.set(folder, code);
      return false;
    }
  }

  #changed(changed: Watch, folder: string, event: string, name: string | Buffer | null): void {
    const isOwn = name === basename(folder);
    if (isOwn && event === 'rename') changed.isStale = true;
    if (isOwn || typeof name !== 'string' || changed.names === undefined || changed.names.has(name)) this.#hints.next();
  }
}

const REMEDIES: Readonly<Record<string, string>> = {
  ENOSPC: 'fs.inotify.max_user_watches is used up',
  EMFILE: 'fs.inotify.max_user_instances, or the number of open files, is used up',
  EACCES: 'permission denied',
};

function describe(code: string, folders: readonly string[]): string {
  const [first] = folders;
  const which = folders.length === 1 ? `the folder ${first}` : `${folders.length} folders, ${first} among them,`;
  return `${which} cannot be watched (${REMEDIES[code] ? `${code}: ${REMEDIES[code]}` : code}): changes there are seen only by looking now and then`;
}
