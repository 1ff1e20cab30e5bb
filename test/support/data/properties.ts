import fc from 'fast-check';
import { seedOf } from './seeded-random';

/**
 * Properties play the same inputs in every run, so that a failure is due to the change under test; `WEIR_SEED` plays
 * others.
 */
fc.configureGlobal({ seed: seedOf('properties') });

export default fc;
