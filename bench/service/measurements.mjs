// Measurements in processes of their own, and what becomes of several of them.
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/**
 * Runs a script, and resolves with the first message that it sends to its parent.
 *
 * @param script the URL of a module
 */
export function measureInProcess(script, args) {
  const child = fork(fileURLToPath(script), args);
  return new Promise((resolve, reject) => {
    child.once('message', resolve);
    child.once('exit', (code) => reject(new Error(`the measuring process exited with ${code}`)));
  });
}

/** The middle one of the numbers, or the upper one of two. */
export function median(numbers) {
  return numbers.toSorted((one, other) => one - other)[Math.floor(numbers.length / 2)];
}
