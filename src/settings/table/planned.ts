/**
 * Features of a later release that already have settings. When a feature is released, delete its line: the compiler then reports
 * every mark in the table that has to be removed.
 */
export const planned = {
  workers: 'worker processes',
} as const;
