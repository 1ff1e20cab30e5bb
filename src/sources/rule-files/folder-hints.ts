import { watch as watchPath } from 'node:fs';
import { basename, dirname } from 'node:path';
import { watch as watchTree } from 'chokidar';
import { Observable } from 'rxjs';
import { codeOf } from '../../text/thrown';

/**
 * Emits when the file system gives notice of a change in a folder or its subfolders. A hint, no more: there is none on file systems
 * without change notification, in a folder that is created again, or when resources are exhausted. Never fails and never completes.
 *
 * @param folder a real path: what a switched link leads to would not be watched
 * @param onError receives the code of each error
 */
export function folderHints(folder: string, onError: (code: string) => void): Observable<unknown> {
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
export function nameHints(path: string, onError: (code: string) => void): Observable<unknown> {
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
