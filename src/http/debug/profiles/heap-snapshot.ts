import { Session } from 'node:inspector/promises';
import { getHeapSnapshot } from 'node:v8';
import type { Context } from 'koa';
import { nameFile } from './response';

/** Responds with a snapshot of all objects, in the format of the developer tools of browsers. */
export async function respondWithHeapSnapshot(ctx: Context): Promise<void> {
  const snapshot = getHeapSnapshot();
  await forgetObjectIds();
  nameFile(ctx, 'heapsnapshot');
  ctx.set('Content-Type', 'application/json');
  ctx.body = snapshot;
}

/**
 * A snapshot gives every object an id, for comparisons with a later one. V8 would keep these ids and update them whenever the
 * garbage collector moves an object: measured, collections then took more than three times as long for the life of the process.
 */
async function forgetObjectIds(): Promise<void> {
  const session = new Session();
  session.connect();
  try {
    await session.post('HeapProfiler.enable');
    await session.post('HeapProfiler.disable');
  } finally {
    session.disconnect();
  }
}
