import type { Load } from '../scenarios/loads';

/** Connections, and the calls in flight on each in a closed loop: the same number of calls with both protocols. */
export function connectionsFor({ protocol }: Load): { readonly connections: number; readonly outstanding: number } {
  // HTTP/1.1 has one call in flight per connection.
  return protocol === 'json' ? { connections: 256, outstanding: 1 } : { connections: 8, outstanding: 32 };
}
