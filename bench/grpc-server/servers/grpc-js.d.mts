/** Resolves with the port on 127.0.0.1. */
export function start(): Promise<number>;
