import { redisFaultTests } from './fault-tests';

redisFaultTests('fast');
