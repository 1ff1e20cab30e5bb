import { attackTests } from './attack-tests';

attackTests('long');
