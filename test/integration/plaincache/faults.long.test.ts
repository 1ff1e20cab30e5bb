import { memcachedFaultTests } from './memcached-faults';

memcachedFaultTests('long');
