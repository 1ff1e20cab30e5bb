import { redisFaultTests } from './fault-courses';

redisFaultTests('long');
