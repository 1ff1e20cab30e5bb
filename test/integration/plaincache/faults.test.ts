import { memcachedFaultTests } from './memcached-faults';

memcachedFaultTests('fast');
