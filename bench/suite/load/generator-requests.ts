import type { Load } from '../scenarios/loads';
import type { Target } from './connection';

/** What the generator process can be asked for. Timeouts are in ms, `outstanding` is the calls in flight per connection. */
export type GeneratorRequest =
  | { readonly kind: 'open'; readonly load: Load; readonly targets: readonly Target[]; readonly connections: number }
  | { readonly kind: 'closed'; readonly outstanding: number }
  | { readonly kind: 'fill'; readonly outstanding: number; readonly calls: number; readonly timeout: number }
  | { readonly kind: 'paced'; readonly perSecond: number }
  | { readonly kind: 'answered' }
  | { readonly kind: 'mark' }
  | { readonly kind: 'stop'; readonly timeout: number };
