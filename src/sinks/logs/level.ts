/** The names of levels in log lines, least severe first. */
export const LOG_LEVELS = ['debug', 'info', 'warning', 'error', 'fatal'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];
