import { redisFaultTests } from './fault-courses';

redisFaultTests('fast');
