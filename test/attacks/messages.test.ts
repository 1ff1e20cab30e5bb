import { attackTests } from './attack-tests';

attackTests('Large messages');
attackTests('Other messages');
