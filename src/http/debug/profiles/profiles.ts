import type { Router } from '@koa/router';
import { methodNotAllowed } from '../../server/fallbacks';
import type { DebugEndpoint } from '../endpoint';
import { cpuProfile } from './cpu-profile';
import { heapProfiles } from './heap-profile';

/**
 * The profiles of this process.
 *
 * @param availableMemory the bytes that it can still allocate
 */
export function profilesOfProcess(availableMemory: () => number): readonly DebugEndpoint[] {
  return [cpuProfile(), ...heapProfiles(availableMemory)];
}

/** HEAD is not supported: it would record a profile and discard it. */
export function routeProfiles(router: Router, profiles: readonly DebugEndpoint[]): void {
  for (const { path, get } of profiles) {
    const reject = methodNotAllowed('GET');
    router.head(path, reject).get(path, get).all(path, reject);
  }
}
