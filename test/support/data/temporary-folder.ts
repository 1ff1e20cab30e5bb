import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

/** A temporary folder of the real file system, which is removed with all that is in it. */
export class TemporaryFolder implements Disposable {
  constructor(readonly base = mkdtempSync(join(tmpdir(), 'weir-test-'))) {}

  at(path: string): string {
    return join(this.base, path);
  }

  /** Writes a file in place and creates missing folders. Returns where it is. */
  write(path: string, content: string): string {
    mkdirSync(dirname(this.at(path)), { recursive: true });
    writeFileSync(this.at(path), content);
    return this.at(path);
  }

  [Symbol.dispose](): void {
    rmSync(this.base, { recursive: true, force: true });
  }
}
