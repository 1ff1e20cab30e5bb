/**
 * What a later release brings. When a feature arrives, delete its line: the compiler then names every mark in the table that
 * has to go with it.
 */
export const planned = {
  workers: 'worker processes',
  plaincache: 'the memcache-type store',
} as const;
