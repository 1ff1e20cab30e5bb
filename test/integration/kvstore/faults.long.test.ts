import { redisFaultTests } from './fault-tests';

redisFaultTests('long');
