import { attackTests } from './attack-tests';

attackTests('HTTP/2 frames');
attackTests('HTTP/1.1 requests');
