import { rename, writeFile } from 'node:fs/promises';

/** Writes a file in one step, by a rename, as many editors do: nobody reads a part of it. */
export async function replaceFile(path: string, content: string): Promise<void> {
  await writeFile(`${path}.new~`, content);
  await rename(`${path}.new~`, path);
}
